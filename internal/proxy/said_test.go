package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestABodyInAnswerToHEADIsNotLogged: net/http's transport logs what it did not expect on an
// idle connection, to the program's own log.
func TestABodyInAnswerToHEADIsNotLogged(t *testing.T) {
	var said lockedBuffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	ended := make(chan struct{}, 2)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		c, b, _ := rw.(http.Hijacker).Hijack()
		defer c.Close()
		body := r.Header.Get("Authorization")
		fmt.Fprintf(b, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		b.Flush()
		io.Copy(io.Discard, b)
		ended <- struct{}{}
	})
	w.server.TLS.NextProtos = []string{"http/1.1"}
	c := w.inside()
	if res, text := w.do(c, "HEAD", "https://example.com/", nil); res.StatusCode != 200 {
		t.Error(res.Status, text)
	}
	<-ended                                                   // the proxy has seen it all, and hung up
	if strings.Contains(said.String(), "value-of-the-user") { // the end of the secret, which %q does not change
		t.Errorf("%s", said.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestABodysErrorDoesNotSayTheSecret: net/http quotes the line of a trailer that it
// cannot read.
func TestABodysErrorDoesNotSayTheSecret(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		c, b, _ := rw.(http.Hijacker).Hijack()
		defer c.Close()
		fmt.Fprintf(b, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n no field: %s\r\n\r\n", r.Header.Get("Authorization"))
		b.Flush()
	})
	w.server.EnableHTTP2 = false
	w.server.TLS.NextProtos = []string{"http/1.1"}
	w.do(w.inside(), "GET", "https://example.com/", nil)
	said := ""
	for _, e := range w.ended() {
		said += e.Err
	}
	if strings.Contains(said, "value-of-the-user") || !strings.Contains(said, errFraming.Error()) {
		t.Errorf("%q", said)
	}
}
