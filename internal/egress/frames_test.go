package egress

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames asks over HTTP/2 with the fields of a header as they are, "name=value", in
// which ␠ is a space, ␍ a carriage return and ␊ a line feed,
// and returns the status; "": the stream or the connection was ended.
func frames(t *testing.T, w *secureWorld, fields string) string {
	t.Helper()
	c, err := w.tls("example.com:443", "example.com", "h2")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, preface)
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, field := range strings.Fields(fields) {
		name, value, _ := strings.Cut(field, "=")
		e.WriteField(hpack.HeaderField{Name: name, Value: strings.NewReplacer("␠", " ", "␍", "\r", "␊", "\n").Replace(value)})
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		switch frame, err := f.ReadFrame(); frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		default:
			if err != nil {
				return ""
			}
		}
	}
}

func TestPseudoHeadersNameTheTargetOrAreRefused(t *testing.T) {
	hits := make(chan string, 100)
	w := newSecureWorld(t, Config{Credentials: bearer(), Requests: []RequestRule{{Host: "example.com", Paths: []string{"/ok"}}}},
		func(rw http.ResponseWriter, r *http.Request) { hits <- fmt.Sprint(r.Host, r.URL, r.Header["Host"]) })
	const get = ":method=GET :scheme=https "
	for fields, want := range map[string]string{
		get + ":authority=example.com :path=/ok":                                             "200",
		get + ":path=/ok host=example.com":                                                   "200",
		get + ":authority=example.com:443 :path=/ok":                                         "200",
		get + ":authority=api.example.com :path=/ok":                                         "403",
		get + ":path=/ok host=api.example.com":                                               "403",
		get + ":authority=example.com :path=/ok host=api.example.com":                        "403",
		get + ":authority=api.example.com :path=/ok host=example.com":                        "403",
		get + ":authority=example.com :path=/admin":                                          "403",
		get + ":authority=example.com :path=/ok/../admin":                                    "403",
		get + ":authority=example.com :path=https://api.example.com/ok":                      "",
		get + ":authority=example.com :path=//api.example.com/ok":                            "403",
		get + ":authority=example.com :authority=api.example.com :path=/":                    "",
		get + ":authority=u@example.com :path=/ok":                                           "",
		":method=CONNECT :authority=api.example.com:443":                                     "403",
		":method=CONNECT :authority=example.com:443":                                         "403",
		":method=CONNECT :protocol=websocket :scheme=https :authority=example.com :path=/ok": "",
		get + ":authority=example.com :path=/ok transfer-encoding=chunked":                   "",
		get + ":authority=example.com :path=/ok connection=upgrade upgrade=h2c":              "",
		get + ":authority=example.com :path=/ok?a␠b":                                         "403",
		get + ":authority=example.com :path=/ok?a␠HTTP/1.1":                                  "403",
		get + ":authority=example.com :path=/ok?a␍␊x:␠y":                                     "",
		get + ":authority=example.com :path=/ok x=a␍␊host:␠api.example.com":                  "",
		":method=GET␠/admin :scheme=https :authority=example.com :path=/ok":                  "",
		get + ":authority=example.com :path=/ok content-length=5":                            "200", // of nothing: no length is passed on
		get + ":authority=example.com :path=/ok x-http-method-override=DELETE":               "403",
	} {
		got := frames(t, w, fields)
		if got != want && (want == "200" || got == "200") {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
		if got == "200" {
			if hit := <-hits; hit != "example.com/ok []" {
				t.Errorf("%s: the server saw %s", fields, hit)
			}
		}
	}
	if len(hits) != 0 {
		t.Errorf("the server was asked for %s", <-hits)
	}
}
