package proxy

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// echoes are ways in which a server gives back what it was sent. They write nothing
// else but marks around it.
var echoes = map[string]func(w http.ResponseWriter, secret string){
	"a body": func(w http.ResponseWriter, s string) { io.WriteString(w, s) },
	"a body in chunks of a byte": func(w http.ResponseWriter, s string) {
		for i := range len(s) {
			io.WriteString(w, s[i:i+1])
			w.(http.Flusher).Flush()
		}
	},
	"a body of a known length": func(w http.ResponseWriter, s string) {
		w.Header().Set("Content-Length", fmt.Sprint(len(s)))
		io.WriteString(w, s)
	},
	"an error's body": func(w http.ResponseWriter, s string) { http.Error(w, "no such key: "+s, http.StatusUnauthorized) },
	"a header":        func(w http.ResponseWriter, s string) { w.Header().Set("X-Echo", "Bearer "+s) },
	"a header's name": func(w http.ResponseWriter, s string) {
		w.Header()["X-"+base64.RawURLEncoding.EncodeToString([]byte(s))] = []string{"1"}
	},
	"a header of two": func(w http.ResponseWriter, s string) { w.Header()["X-Echo"] = []string{"1", s} },
	"a cookie":        func(w http.ResponseWriter, s string) { w.Header().Set("Set-Cookie", "a="+url.QueryEscape(s)) },
	"a place to go to": func(w http.ResponseWriter, s string) {
		w.Header().Set("Location", "/?a="+url.QueryEscape(s))
		w.WriteHeader(302)
	},
	"a trailer": func(w http.ResponseWriter, s string) {
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(200)
		w.Header().Set("X-End", s)
	},
	"an unforeseen one": func(w http.ResponseWriter, s string) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-End", s)
	},
	"a hint beforehand": func(w http.ResponseWriter, s string) {
		w.Header().Set("Link", "<"+s+">")
		w.WriteHeader(103)
		w.Header().Del("Link")
	},
	"an answer to wait": func(w http.ResponseWriter, s string) { w.Header().Set("X", s); w.WriteHeader(102); w.Header().Del("X") },
	"gzip":              func(w http.ResponseWriter, s string) { zipped(w, s) },
	"two gzips":         func(w http.ResponseWriter, s string) { zipped(w, s[:9]); zipped(w, s[9:]) },
	"a query":           func(w http.ResponseWriter, s string) { io.WriteString(w, url.Values{"a": {s}}.Encode()) },
	"a path":            func(w http.ResponseWriter, s string) { io.WriteString(w, url.PathEscape(s)) },
	"JSON":              func(w http.ResponseWriter, s string) { json.NewEncoder(w).Encode(s) },
	"HTML":              func(w http.ResponseWriter, s string) { io.WriteString(w, html.EscapeString(s)) },
	"hexadecimal":       func(w http.ResponseWriter, s string) { io.WriteString(w, hex.EncodeToString([]byte(s))) },
	"base64": func(w http.ResponseWriter, s string) {
		io.WriteString(w, base64.StdEncoding.EncodeToString([]byte("u:"+s)))
	},
	"UTF-16": func(w http.ResponseWriter, s string) {
		io.WriteString(w, "\x00"+strings.Join(strings.Split(s, ""), "\x00"))
	},
	"an event of a stream": func(w http.ResponseWriter, s string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", s)
	},
}

func zipped(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	io.WriteString(z, s)
	z.Close()
}

// TestASecretComesBackByNoWay through the whole proxy.
func TestASecretComesBackByNoWay(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		echoes[r.URL.Query().Get("way")](rw, secret)
	})
	for way := range echoes {
		said := ""
		c := w.inside()
		c.Transport.(*http.Transport).DisableCompression = true
		res, body := w.do(c, "GET", "https://example.com/?way="+url.QueryEscape(way), func(r *http.Request) {
			*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				said += fmt.Sprint(h)
				return nil
			}}))
		})
		if res.StatusCode == 0 || res.StatusCode == 502 {
			t.Errorf("%s: %s %s", way, res.Status, body)
		}
		said += fmt.Sprint(res.Status, res.Header, res.Trailer, body)
		for _, s := range fixture.EchoedForms(testSecret) {
			if strings.Contains(strings.ToLower(said), strings.ToLower(s)) {
				t.Errorf("%s: %q is in %q", way, s, said)
			}
		}
		if hidden := strings.Contains(said, w.placeholder); !hidden && !strings.HasPrefix(way, "a hint") && !strings.HasPrefix(way, "an answer") && way != "a header's name" {
			t.Errorf("%s: no placeholder is in %q", way, said)
		}
	}
}
