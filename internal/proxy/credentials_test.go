package proxy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// secretOf makes credentials of one entry, and says its placeholder.
func secretOf(t *testing.T, c policy.Credential) (credentials, string) {
	t.Helper()
	if c.Name == "" {
		c.Name = "TOKEN"
	}
	if c.Secret == "" {
		c.Secret = testSecret
	}
	if c.Hosts == nil {
		c.Hosts = []string{"api.example.com"}
	}
	all, err := compileCredentials([]policy.Credential{c}, "")
	if err != nil {
		t.Fatal(err)
	}
	return all, all[0].placeholder
}

func basicOf(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestASecretStandsWhereItsPlaceholderMay(t *testing.T) {
	for _, c := range []struct {
		name         string
		credential   policy.Credential
		header, want string // of Field, or of Authorization; P is the placeholder, S the secret
	}{
		{"a bearer", policy.Credential{Place: "bearer"}, "Bearer P", "Bearer S"},
		{"a bearer in another case", policy.Credential{Place: "bearer"}, "bearer P", "bearer S"},
		{"GitHub's word for it", policy.Credential{Place: "bearer"}, "token P", "token S"},
		{"a bearer with more", policy.Credential{Place: "bearer"}, "Bearer Px", "Bearer Px"},
		{"a bearer of another scheme", policy.Credential{Place: "bearer"}, "Digest P", "Digest P"},
		{"a bearer's placeholder as a password", policy.Credential{Place: "bearer"}, basicOf("u", "P"), basicOf("u", "P")},
		{"a password", policy.Credential{Place: "basic"}, basicOf("u", "P"), basicOf("u", "S")},
		{"a password for a given user", policy.Credential{Place: "basic", Field: "me"}, basicOf("u", "P"), basicOf("me", "S")},
		{"a user's name", policy.Credential{Place: "basic"}, basicOf("P", ""), basicOf("S", "")},
		{"a user's name where one is given", policy.Credential{Place: "basic", Field: "me"}, basicOf("P", "x"), basicOf("P", "x")},
		{"a password with more", policy.Credential{Place: "basic"}, basicOf("u", "Px"), basicOf("u", "Px")},
		{"basic's placeholder as a bearer", policy.Credential{Place: "basic"}, "Bearer P", "Bearer P"},
		{"a header", policy.Credential{Place: "header", Field: "x-api-key"}, "P", "S"},
		{"a header with a word before", policy.Credential{Place: "header", Field: "Authorization"}, "Key P", "Key S"},
	} {
		all, placeholder := secretOf(t, c.credential)
		field := c.credential.Field
		if c.credential.Place != "header" {
			field = "Authorization"
		}
		fill := func(s string) string {
			if user, password, ok := parseBasic(s); ok {
				r := strings.NewReplacer("P", placeholder, "S", testSecret)
				return basicOf(r.Replace(user), r.Replace(password))
			}
			return strings.NewReplacer("P", placeholder, "S", testSecret).Replace(s)
		}
		r, _ := http.NewRequest("GET", "https://api.example.com/", nil)
		r.Header.Set(field, fill(c.header))
		r.Header.Set("X-Other", placeholder)
		all[0].put(r)
		if got := r.Header.Get(field); got != fill(c.want) || r.Header.Get("X-Other") != placeholder {
			t.Errorf("%s: %q, want %q; other header %q", c.name, got, fill(c.want), r.Header.Get("X-Other"))
		}
	}
}

func TestASecretStandsInItsParameterAlone(t *testing.T) {
	all, p := secretOf(t, policy.Credential{Place: "query", Field: "key"})
	r, _ := http.NewRequest("GET", "https://api.example.com/"+p+"?a=%7E&k%65y="+p+"&other="+p+"&keys="+p+"&key="+p, nil)
	all[0].put(r)
	s := url.QueryEscape(testSecret)
	if want := "a=%7E&k%65y=" + s + "&other=" + p + "&keys=" + p + "&key=" + p; r.URL.RawQuery != want || strings.Contains(r.URL.Path, testSecret) {
		t.Errorf("%s", r.URL)
	}
}

func TestAPlaceholderGoesToItsHostOverTLSOnly(t *testing.T) {
	all, p := secretOf(t, policy.Credential{Place: "bearer", Hosts: []string{"api.example.com:443", "*.example.org"}})
	for _, c := range []struct {
		name, host string
		port       uint16
		secure     bool
		put        func(*http.Request)
		want       bool
	}{
		{"its host", "api.example.com", 443, true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p) }, true},
		{"its host's other place", "api.example.com", 443, true, func(r *http.Request) { r.URL.RawQuery = "t=" + p }, true},
		{"below its wildcard", "a.example.org", 8443, true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p) }, true},
		{"clear text", "api.example.com", 443, false, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p) }, false},
		{"another port", "api.example.com", 8443, true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p) }, false},
		{"another host, in a header", "evil.example", 443, true, func(r *http.Request) { r.Header.Set("X-Any", "a"+p) }, false},
		{"another host, in a cookie", "evil.example", 443, true, func(r *http.Request) { r.Header.Set("Cookie", "a="+p) }, false},
		{"another host, as a password", "evil.example", 443, true, func(r *http.Request) { r.SetBasicAuth("u", p) }, false},
		{"another host, in the path", "evil.example", 443, true, func(r *http.Request) { r.URL.Path = "/" + p }, false},
		{"another host, in the query, escaped", "evil.example", 443, true, func(r *http.Request) { r.URL.RawQuery = "x=%68" + p[1:] }, false},
		{"another host, as a header's name", "evil.example", 443, true, func(r *http.Request) { r.Header.Set(p, "1") }, false},
		{"another host without a placeholder", "evil.example", 443, false, func(r *http.Request) {}, true},
	} {
		r, _ := http.NewRequest("GET", "https://x/", nil)
		c.put(r)
		no := all.judge(r, hostOf(t, c.host), c.port, c.secure)
		if (no == nil) != c.want || no != nil && !strings.Contains(no.Rule, "TOKEN") {
			t.Errorf("%s: %v", c.name, no)
		}
	}
}

func TestACredentialThatCannotHoldIsAnErrorThatDoesNotSayTheSecret(t *testing.T) {
	good := policy.Credential{Name: "TOKEN", Secret: testSecret, Hosts: []string{"a.example"}, Place: "bearer"}
	for name, change := range map[string]func(*policy.Credential){
		"no name":                        func(c *policy.Credential) { c.Name = "" },
		"a name with an equals sign":     func(c *policy.Credential) { c.Name = "A=B" },
		"a proxy's variable":             func(c *policy.Credential) { c.Name = "HTTPS_PROXY" },
		"a secret of two lines":          func(c *policy.Credential) { c.Secret = testSecret + "\r\nX-Injected: 1" },
		"a secret with a space after it": func(c *policy.Credential) { c.Secret = testSecret + " " },
		"a host that is none":            func(c *policy.Credential) { c.Hosts = []string{"a b"} },
		"a header without a name":        func(c *policy.Credential) { c.Place = "header" },
		"a header that frames":           func(c *policy.Credential) { c.Place, c.Field = "header", "transfer-encoding" },
		"a user with a colon":            func(c *policy.Credential) { c.Place, c.Field = "basic", "a:b" },
	} {
		c := good
		change(&c)
		_, err := compileCredentials([]policy.Credential{good, c}, "")
		if c.Name == good.Name && c.Secret != good.Secret && err == nil {
			t.Errorf("%s: two secrets for one variable", name)
		}
		_, err = compileCredentials([]policy.Credential{c}, "")
		var typed *ConfigError
		if !errors.As(err, &typed) || c.Secret != "" && strings.Contains(err.Error(), c.Secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := good
	other.Place, other.Field = "basic", "x"
	all, err := compileCredentials([]policy.Credential{good, other}, "")
	if err != nil || all[0].placeholder != all[1].placeholder || len(all.placeholders()) != 1 {
		t.Errorf("two places for one secret: %v", err)
	}
	other.Secret = "a-second-value"
	if _, err := compileCredentials([]policy.Credential{good, other}, ""); err == nil || strings.Contains(err.Error(), "a-second-value") {
		t.Errorf("two secrets for one variable: %v", err)
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	c := policy.Credential{Name: "TOKEN", Secret: "printable-secret", Hosts: []string{"a.example"}, Place: "bearer"}
	all, err := compileCredentials([]policy.Credential{c}, "")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Network: policy.Network{Credentials: []policy.Credential{c}}}
	g, err := New(Config{Network: policy.Network{Credentials: []policy.Credential{c}}, Key: "printable-secret-of-the-run"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, &c, config, &config, all, all[0], &all[0], struct{ C policy.Credential }{c}, []any{c}, all.redactor, g, struct{ G *Proxy }{g}, g.compiled} {
			s := fmt.Sprintf(verb, v)
			if strings.Contains(s, "printable-secret") || strings.Contains(s, fmt.Sprintf("%x", "printable-secret")) {
				t.Errorf("%s of %T: %s", verb, v, s)
			}
		}
	}
	if b, err := json.Marshal([]any{c, &c}); err != nil || strings.Contains(string(b), "printable-secret") || !strings.Contains(string(b), "TOKEN") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestPlaceholdersAreTheSameWithinAScope: a tool keeps them in files. They have another one's form, and are as long as a long secret.
func TestPlaceholdersAreTheSameWithinAScope(t *testing.T) {
	of := func(scope, name, secret string) string {
		all, err := compileCredentials([]policy.Credential{{Name: name, Secret: secret, Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}, scope)
		if err != nil {
			t.Fatal(err)
		}
		return all[0].placeholder
	}
	a := of("1", "A", "secret-1")
	if a != of("1", "A", "secret-1") {
		t.Error("another proxy of the scope has another placeholder")
	}
	seen := map[string]bool{a: true}
	for _, other := range []string{of("2", "A", "secret-1"), of("1", "B", "secret-1"), of("1", "A", "secret-2"), of("1", "A", strings.Repeat("s", 40)), of("1", "A", strings.Repeat("s", 4000))} {
		if seen[other] || likePlaceholder.FindString(other) != other || url.QueryEscape(other) != other {
			t.Errorf("%s", other)
		}
		seen[other] = true
	}
	if n := len(of("1", "A", strings.Repeat("s", 40))); n != 40 || len(a) != minPlaceholder {
		t.Error(n, len(a))
	}
	for _, s := range []string{"https://github.com/holdfast-dev/holdfast", "holdfast-configurations", "holdfast-2026-11-28", "holdfast-2configuration."[:21]} {
		if like := likePlaceholder.FindString(s); like != "" {
			t.Errorf("%q is taken for a placeholder", like)
		}
	}
}

// FuzzBasic has the parser of basic authorization meet any value.
func FuzzBasic(f *testing.F) {
	f.Add("Basic " + base64.StdEncoding.EncodeToString([]byte("u:p")))
	f.Add("basic dTpw=====")
	f.Fuzz(func(t *testing.T, v string) {
		user, password, ok := parseBasic(v)
		if again, p, ok2 := parseBasic(basicOf(user, password)); ok && (!ok2 || again != user || p != password) {
			t.Errorf("%q is %q and %q, and then %q and %q", v, user, password, again, p)
		}
	})
}
