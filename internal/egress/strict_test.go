package egress

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
)

// framed returns where the first request ends that a scanner has followed; ok is
// false when there is a fault before, or no end.
func framed(b []byte) (end int, ok bool) {
	var s scanner
	for i := range b {
		if _, err := s.feed(b[i : i+1]); err != nil {
			return 0, false
		}
		if s.state == passing || len(s.hosts) > 0 && s.state == requestLine {
			return i + 1, true
		}
	}
	return 0, false
}

func TestScannerFindsTheEndOfARequest(t *testing.T) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:CHUNKED\r\n\r\nA;a=b\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		for _, after := range []string{"", "GET /next HTTP/1.1\r\n", "\x00\x01"} {
			if end, ok := framed([]byte(request + after)); !ok || end != len(request) {
				t.Errorf("%q and %q: %d %v", request, after, end, ok)
			}
		}
	}
}

// FuzzStrict holds the scanner against net/http: what both let through ends at the
// same byte for both.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: x\r\n\r\nGET",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.0\r\nX: a\r\n b\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 1\nTransfer-Encoding : chunked\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end, ok := framed(b)
		var s scanner
		whole, err := s.feed(b)
		if ok && whole < end {
			t.Fatalf("%q: %d bytes at once and %d one by one, %v", b, whole, end, err)
		}
		if !ok {
			return
		}
		src := bytes.NewReader(b)
		r := bufio.NewReader(src)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.Method == http.MethodConnect {
			return // the server gives the connection away at the header's end
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if got := len(b) - src.Len() - r.Buffered(); got != end {
			t.Fatalf("%q ends at %d to net/http, and at %d here", b, got, end)
		}
	})
}

// TestARefusedConnectIsTheLastRequest: the bytes behind a CONNECT are not looked at.
func TestARefusedConnectIsTheLastRequest(t *testing.T) {
	const folded = "GET http://example.com/ HTTP/1.1\nHost: other.com\nProxy-Authorization: Basic eDprM3k=\nX: a\n b\n\n"
	asked := func(w *world) {
		w.web("example.com", 80, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	}
	locked := newWorld(t, Config{Key: "k3y"}, "example.com")
	asked(locked)
	_, r := locked.raw("CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n" + folded)
	if code, _ := answerOf(r); code != http.StatusProxyAuthRequired {
		t.Errorf("without the key: %d", code)
	}
	if code, _ := answerOf(r); code != 0 {
		t.Errorf("what follows is answered with %d", code)
	}
	w := newWorld(t, Config{}, "example.com")
	asked(w)
	c, r := w.connect("example.com:80")
	io.WriteString(c, "CONNECT / HTTP/1.1\r\nHost: example.com\r\n\r\n"+folded)
	if code, _ := answerOf(r); code != http.StatusForbidden {
		t.Errorf("inside of a tunnel: %d", code)
	}
	if code, _ := answerOf(r); code != 0 {
		t.Errorf("what follows inside is answered with %d", code)
	}
}
