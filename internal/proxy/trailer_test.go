package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestATrailerIsNotSharedWhileItIsSent: the two requests are in the hands of two
// goroutines.
func TestATrailerIsNotSharedWhileItIsSent(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	x := &proxiedRequest{g: w.g, scheme: "http"}
	in := (&http.Request{Method: "POST", URL: &url.URL{Path: "/"}, Body: io.NopCloser(strings.NewReader("x")), Trailer: http.Header{"T": nil}}).
		WithContext(context.WithValue(t.Context(), requestKey{}, x))
	pr := &httputil.ProxyRequest{In: in, Out: in.Clone(in.Context())}
	rewriteRequest(pr)
	in.Trailer["T"] = []string{"end"}
	if got := fmt.Sprint(pr.Out.Trailer); got != "map[T:[]]" {
		t.Errorf("%s before the body was read", got)
	}
	io.Copy(io.Discard, pr.Out.Body)
	if got := fmt.Sprint(pr.Out.Trailer); got != "map[T:[end]]" {
		t.Errorf("%s once it was", got)
	}
}

// TestAnEarlyAnswerDoesNotMeetTheTrailer: a server that has heard enough answers
// while the request is being written. Two goroutines at one map are the end of the
// harness; the race detector sees them long before it comes to that.
func TestAnEarlyAnswerDoesNotMeetTheTrailer(t *testing.T) {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReaderSize(c, 8<<10)
				r.Peek(8 << 10)
				io.WriteString(c, "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				io.Copy(io.Discard, r)
			}()
		}
	}()
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, l.Addr().String())
	var announced, trailer strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&announced, "k%x,", i)
	}
	for i := range 150 { // of 1 KiB together
		fmt.Fprintf(&trailer, "k%x:\r\n", i)
	}
	for range 20 {
		c, err := net.Dial("tcp", w.http)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST http://example.com/%s HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTrailer: %s\r\n\r\n0\r\n%s\r\n",
			strings.Repeat("a", 17<<10), strings.TrimSuffix(announced.String(), ","), trailer.String())
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			t.Error(err)
		}
		c.Close()
	}
}
