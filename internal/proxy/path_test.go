package proxy

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestAPathHasOneReadingOrIsRefused(t *testing.T) {
	for _, c := range []struct{ escaped, want string }{
		{"", "/"}, {"/", "/"}, {"/a/b", "/a/b"}, {"/a/", "/a/"}, {"/a%20b", "/a b"}, {"/%61pi", "/api"}, {"/caf%C3%A9", "/café"}, {"/a...b/.git", "/a...b/.git"},
		{"a", ""}, {"*", ""}, {"//evil", ""}, {"/a//b", ""}, {"/a//", ""}, {"/a/../b", ""}, {"/a/.", ""}, {"/a/./b", ""}, {"/..", ""},
		{"/a/%2e%2e/b", ""}, {"/a/.%2E/b", ""}, {"/a%2fb", ""}, {"/a%2Fb", ""}, {"/a%5cb", ""}, {`/a\b`, ""}, {"/a/..;/b", ""}, {"/a;x=1/b", ""}, {"/a%3bx", ""},
		{"/a%252e%252e/b", ""}, {"/a%00", ""}, {"/a%0d%0a", ""}, {"/a%7f", ""}, {"/a%zz", ""}, {"/a%2", ""}, {"/a%", ""}, {"/%c0%ae%c0%ae/b", ""}, {"/a%ff", ""}, {"/a\x01", ""},
		{"/a/..%20/b", ""}, {"/a/.../b", ""}, {"/a/%20/b", ""}, {"/a/.%20./b", ""}, {"/a/\uff0e\uff0e/b", ""}, {"/a/%E2%80%A5/b", ""}, {"/a\uff0f..\uff0fb", ""}, {"/a/..b/c. d", "/a/..b/c. d"},
		{"/a/\ufe30/b", ""}, {"/a/\ufe19", ""}, {"/a/..\u037e/b", ""}, {"/a/..\ufe14/b", ""}, {"/a\u00a5..\u20a9b", ""}, {"/a\u2216b", ""}, {"/a\u2105b", ""}, {"/a\u066a2e", ""},
		{"/a/..\u00a0/b", ""}, {"/a/.\u200b./b", ""}, {"/a/\u00ad../b", ""}, {"/a/\u3000/b", ""}, {"/a/b\u00a0c/d\u200bе", "/a/b\u00a0c/d\u200bе"},
	} {
		got, err := canonicalPath(c.escaped)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.escaped, got, err, c.want)
		}
	}
}

func TestAPrefixHasWholeSegmentsAndItsOwnCase(t *testing.T) {
	for _, c := range []struct {
		path, prefix string
		want         bool
	}{
		{"/repos/me", "/repos/me", true}, {"/repos/me/x", "/repos/me", true}, {"/repos/me2", "/repos/me", false}, {"/repos", "/repos/me", false},
		{"/repos/me/", "/repos/me/", true}, {"/repos/me", "/repos/me/", false}, {"/REPOS/me", "/repos/me", false}, {"/x", "/", true}, {"/", "/", true},
	} {
		if isBelow(c.path, c.prefix) != c.want {
			t.Errorf("%q below %q is %v", c.path, c.prefix, !c.want)
		}
	}
}

// FuzzPath holds the canonical form against other readers: what is accepted below
// a prefix stays below it, decoded once more, cleaned, cut at semicolons or merged.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a/b", "/a/../b", "/a/%2e%2e/b", "/a/..;/b", "/a//../b", "/a/%252e%252e/b", "/a/%c0%ae%c0%ae/", `/a\..\b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		got, err := canonicalPath(escaped)
		if err != nil || !isBelow(got, "/a") {
			return
		}
		for name, read := range map[string]func(string) string{
			"cleaned": path.Clean,
			"decoded twice": func(s string) string {
				u, err := url.PathUnescape(s)
				if err != nil {
					return s
				}
				return path.Clean(u)
			},
			"with \\ as /": func(s string) string { return path.Clean(strings.ReplaceAll(s, `\`, "/")) },
			"cut at ;":     func(s string) string { s, _, _ = strings.Cut(s, ";"); return path.Clean(s) },
		} {
			if other := read(got); !isBelow(other, "/a") {
				t.Errorf("%q is taken for %q, and for %q when %s", escaped, got, other, name)
			}
		}
		if u, err := url.ParseRequestURI(escaped); err == nil && u.Path != got {
			t.Errorf("%q is %q here and %q for net/url", escaped, got, u.Path)
		}
	})
}

func rules(t *testing.T, list ...policy.RequestRule) requestRules {
	t.Helper()
	r, err := compileRequests(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hostOf(t *testing.T, s string) hostrules.Host {
	t.Helper()
	h, err := hostrules.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestARequestIsHeldAgainstMethodAndPath(t *testing.T) {
	list := rules(t, policy.RequestRule{Host: "api.example.com", Methods: []string{"GET"}, Paths: []string{"/repos/me", "/user"}},
		policy.RequestRule{Host: "api.example.com:443", Methods: []string{"POST"}, Paths: []string{"/graph"}})
	for _, c := range []struct {
		name, host, method, target string
		header                     string
		want                       bool
	}{
		{"a path below a prefix", "api.example.com", "GET", "/repos/me/x?q=/admin", "", true},
		{"HEAD where GET is allowed", "api.example.com", "HEAD", "/user", "", true},
		{"another method", "api.example.com", "DELETE", "/repos/me", "", false},
		{"a method in lower case", "api.example.com", "get", "/user", "", false},
		{"another rule's method and path", "api.example.com", "POST", "/graph", "", true},
		{"one rule's method at another's path", "api.example.com", "POST", "/user", "", false},
		{"another path", "api.example.com", "GET", "/admin", "", false},
		{"a neighbour of a prefix", "api.example.com", "GET", "/repos/me2", "", false},
		{"dot segments", "api.example.com", "GET", "/repos/me/../../admin", "", false},
		{"escaped dots", "api.example.com", "GET", "/repos/me/%2e%2e/%2e%2e/admin", "", false},
		{"an escaped slash", "api.example.com", "GET", "/repos/me%2f..%2f..%2fadmin", "", false},
		{"a path parameter", "api.example.com", "GET", "/repos/me/..;/..;/admin", "", false},
		{"a doubled slash", "api.example.com", "GET", "//repos/me", "", false},
		{"a case that servers may fold", "api.example.com", "GET", "/User", "", false},
		{"the method in a header", "api.example.com", "GET", "/user", "X-HTTP-Method-Override", false},
		{"the method in a header, for CGI", "api.example.com", "GET", "/user", "X_Http-Method_override", false},
		{"the method in a header, for lighttpd", "api.example.com", "GET", "/user", "X!HTTP.Method*Override", false},
		{"a length that is none", "api.example.com", "GET", "/user", "Content_Length", false},
		{"an encoding that is none", "api.example.com", "GET", "/user", "Transfer.Encoding", false},
		{"a length", "api.example.com", "GET", "/user", "Content-Length", true},
		{"the path in another header", "api.example.com", "GET", "/user", "X-Override-URL", false},
		{"the path in a header", "api.example.com", "GET", "/user", "X-Original-URL", false},
		{"a host without a rule", "other.example.com", "DELETE", "/a/../b", "", true},
	} {
		r, err := http.NewRequest(c.method, "https://"+c.host+c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			r.Header.Set(c.header, "/admin")
		}
		no := list.judge(r, hostOf(t, c.host), 443)
		if (no == nil) != c.want {
			t.Errorf("%s: %v", c.name, no)
		}
		if no != nil && (no.Rule == "" || no.Why == "") {
			t.Errorf("%s: the refusal says neither rule nor reason: %+v", c.name, no)
		}
	}
}

func TestARequestRuleThatCannotHoldIsAnError(t *testing.T) {
	for name, r := range map[string]policy.RequestRule{
		"no host": {}, "a method in lower case": {Host: "a.example", Methods: []string{"get"}}, "CONNECT": {Host: "a.example", Methods: []string{"CONNECT"}},
		"an empty method": {Host: "a.example", Methods: []string{""}}, "a relative path": {Host: "a.example", Paths: []string{"api"}}, "an empty path": {Host: "a.example", Paths: []string{""}},
		"an escaped path": {Host: "a.example", Paths: []string{"/a%20b"}}, "dots": {Host: "a.example", Paths: []string{"/a/../b"}},
	} {
		if _, err := compileRequests([]policy.RequestRule{r}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
