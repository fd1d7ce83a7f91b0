package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestARequestsTargetGoesOnByteForByte, or is refused, by each way by which requests are read; and rules are judged on the same bytes.
func TestARequestsTargetGoesOnByteForByte(t *testing.T) {
	got := make(chan string, 1)
	record := func(rw http.ResponseWriter, r *http.Request) { got <- r.RequestURI }
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, record)
	w.web("example.com", 80, record)
	secure := func() (io.Writer, *bufio.Reader) {
		c, err := w.tls("example.com:443", "example.com", "http/1.1")
		if err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewReader(c)
	}
	for _, way := range []struct {
		name, prefix string
		open         func() (io.Writer, *bufio.Reader)
	}{
		{"absolute", "http://example.com", func() (io.Writer, *bufio.Reader) { return w.raw("") }},
		{"absolute, and a port", "HTTP://EXAMPLE.com.:80", func() (io.Writer, *bufio.Reader) { return w.raw("") }},
		{"origin form to the proxy", "", func() (io.Writer, *bufio.Reader) { return w.raw("") }},
		{"a tunnel", "", func() (io.Writer, *bufio.Reader) { return w.connect("example.com:80") }},
		{"absolute in a tunnel", "http://example.com", func() (io.Writer, *bufio.Reader) { return w.connect("example.com:80") }},
		{"TLS", "", secure},
		{"absolute in TLS", "https://example.com", secure},
	} {
		for _, target := range []string{
			"/", "/?", "/a%2Fb/{x}", "/a%2fb/{x}", "/a%2Fb/\xc3\xbc", "/a%2Fb/%5B^%5D", "/a[b]|c`d", "/<>\"", "/a\\b", "/a%2Fb?q={x}&y=%2f#z", "/a#b%2Fc", "/a?", "/a??b?", "/%41%7e~", "/%e2%28%a1/{", "/\xff\xfe/x%2F", "/a;b=c,d@e:f!$&'()*+=",
			"/a/../b/./c", "/a//b%2F{", "/a%00b/{", "/a%0d%0ab/{", "/%2e%2e/{x}", "/@s%2fn", "/..", "/?a=b c"[:5], "//", "//evil.example/x", "///a?b", "/http://evil.example/{%2F}", "/" + strings.Repeat("%2F{", 2000),
		} {
			c, r := way.open()
			fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", way.prefix, target)
			if status, text := answerOf(r); status != 200 {
				t.Errorf("%s: %q: %d %q", way.name, target, status, text)
			} else if came := <-got; came != target {
				t.Errorf("%s: %q arrives as %q", way.name, target, came)
			}
		}
		for _, target := range []string{"//evil.example/{x}", "//a%2fb/\xc3\xbc", "/a%zz", "/a%2", "/a\x01b", "/a\x7fb", "/a b"} {
			c, r := way.open()
			fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", way.prefix, target)
			if status, text := answerOf(r); status != 400 || len(got) > 0 {
				t.Errorf("%s: %q: %d %q", way.name, target, status, text)
			}
		}
	}
	for request, want := range map[string]string{"OPTIONS http://example.com HTTP/1.1": "*", "GET http://example.com HTTP/1.1": "/", "GET http://example.com?a={b} HTTP/1.1": "/?a={b}", "OPTIONS http://example.com?a HTTP/1.1": "/?a"} {
		if status, text := w.ask(request + "\r\nHost: x\r\n\r\n"); status != 200 {
			t.Errorf("%q: %d %q", request, status, text)
		} else if want == "*" { // which net/http's server answers by itself
			continue
		} else if came := <-got; came != want {
			t.Errorf("%q arrives as %q", request, came)
		}
	}
	for request, want := range map[string]int{"OPTIONS *": 200, "GET http:/evil.example/": 400, "GET http:x": 403, "GET evil.example:80": 403, "GET ftp://example.com/": 403} {
		c, r := w.connect("example.com:80")
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: example.com\r\n\r\n", request)
		if status, text := answerOf(r); status != want && (want == 200 || status != 400) {
			t.Errorf("%q: %d %q", request, status, text)
		}
	}
	if len(got) > 0 {
		t.Errorf("the server was asked for %q", <-got)
	}
}

// TestRulesAreJudgedOnTheTargetThatIsSent: what is odd and harmless passes, and nothing else does.
func TestRulesAreJudgedOnTheTargetThatIsSent(t *testing.T) {
	got := make(chan string, 1)
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "example.com:80", Paths: []string{"/v1"}}}}}, "example.com:80")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { got <- r.RequestURI })
	for target, passes := range map[string]bool{
		"/v1/{x}": true, "/v1/a[b]|^": true, "/v1/%C3%BC": true, "/v1?{x}#%2f": true, "/v1/\xc3\xbc": false, "/v1/\xc2\xa0x": false, "/v1/\xff": false, "/v1/a%2Fb/{x}": false, "/v1/{x}/../../v2": false,
		"/v1{x}": false, "/v2/{x}": false, "//v1/x": false, "/v1/%7Bx%7d/{": true, "/v1\\{": false, "/v1;{": false, "/%76%31/{x}": true, "*": false, "/v1#/{": false,
	} {
		status, text := w.ask("GET http://example.com" + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if target == "*" {
			c, r := w.connect("example.com:80")
			io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n")
			status, text = answerOf(r)
		}
		if passes != (status == 200) {
			t.Errorf("%q: %d %q", target, status, text)
		} else if passes {
			if came := <-got; came != target {
				t.Errorf("%q arrives as %q", target, came)
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("the server was asked for %q", <-got)
	}
}

// TestDecideAndObserveHearTheTargetThatIsSent.
func TestDecideAndObserveHearTheTargetThatIsSent(t *testing.T) {
	asked := make(chan string, 1)
	w := newWorld(t, Config{Network: policy.Network{Decide: func(_ context.Context, r policy.Request) policy.Verdict {
		asked <- r.Path
		return policy.Verdict{Allow: true}
	}}})
	w.web("example.com", 80, func(http.ResponseWriter, *http.Request) {})
	if status, _ := w.ask("GET http://example.com/a%2Fb/{x}?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); status != 200 {
		t.Error(status)
	}
	if path := <-asked; path != "/a%2Fb/{x}" {
		t.Errorf("Decide hears %q", path)
	}
	if events := w.ended(); len(events) != 1 || events[0].Path != "/a%2Fb/{x}" {
		t.Errorf("%+v", events)
	}
}
