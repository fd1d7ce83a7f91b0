package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// tiny is a header of n fields that have nothing in them.
func tiny(n int) string { return strings.Repeat("abc:\r\n", n) }

// TestHeadersAreBoundedInFields, both ways, trailers among them: 64 KiB of the smallest fields took
// 2 MiB of the harness, and 256 KiB of a server 11.
func TestHeadersAreBoundedInFields(t *testing.T) {
	var fields atomic.Int64 // of a response
	w := newWorld(t, Config{}, "example.com")
	w.hostileAt("example.com", 80, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/trailer" {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n%s\r\n", tiny(int(fields.Load())))
			return
		}
		if r.URL.Path == "/hint" {
			fmt.Fprintf(c, "HTTP/1.1 103 Early Hints\r\n%s\r\n", tiny(int(fields.Load())))
		}
		if r.URL.Path == "/" {
			fields.Store(0)
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%s\r\n", tiny(int(fields.Load())))
	})
	ask := func(path, more string) (int, error) {
		_, in := w.raw("GET http://example.com" + path + " HTTP/1.1\r\nHost: example.com\r\n" + more + "\r\n")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	for n, want := range map[int]int{0: 200, maxRequestFields - 1: 200, maxRequestFields: 431, 10_000: 431} {
		if code, err := ask("/", tiny(n)); code != want {
			t.Errorf("%d fields of a request: %d, %v", n+1, code, err)
		}
	}
	for n, want := range map[int]int{0: 200, maxResponseFields - 1: 200, maxResponseFields + 1: 502, 10_000: 502} {
		for _, path := range []string{"/head", "/hint"} {
			fields.Store(int64(n))
			if code, err := ask(path, ""); code != want {
				t.Errorf("%d fields of %s: %d, %v", n, path, code, err)
			}
		}
	}
	for n, whole := range map[int]bool{0: true, readBuffer/len("abc:\r\n") - 2: true, readBuffer/len("abc:\r\n") + 1: false, 10_000: false} {
		fields.Store(int64(n))
		if code, err := ask("/trailer", ""); code != 200 && code != 502 || (err == nil && code == 200) != whole {
			t.Errorf("%d fields of a trailer: %d, %v", n, code, err)
		}
	}
	if code, err := ask("/", ""); code != 200 {
		t.Error(code, err)
	}
	w.g.Close()
	if used := w.g.headerBudget.used.Load(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// TestAListIsChargedByItsElements: net/http makes a map of a Trailer's, of both directions.
func TestAListIsChargedByItsElements(t *testing.T) {
	m := headMeter{budget: new(headerBudget), most: maxRequestFields, bytes: maxHeadBytes}
	if _, whole, fault := m.count([]byte("POST / HTTP/1.1\r\nTrailer: a" + strings.Repeat(",abc", 10_000) + "\r\n\r\n")); !whole || fault != nil {
		t.Fatal(whole, fault)
	}
	if used := m.budget.used.Load(); used < 10_000*200 { // each took 203 bytes in a request's maps
		t.Errorf("%d bytes are taken", used)
	}
	m.reset()
	if used := m.budget.used.Load(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// TestAllHeadersShareABudget: requests whose body does not come hold theirs; what is beyond the
// budget is refused in words, and served once there is room.
func TestAllHeadersShareABudget(t *testing.T) {
	kerneltest.Long(t)
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	head := "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\n" + tiny(maxRequestFields-2) + "\r\n"
	each := int64(maxRequestFields)*fieldCost + int64(len(head))*byteCost
	var held []net.Conn
	for range 2 * maxHeaderMemory / each {
		c, _ := w.raw(head)
		held = append(held, c)
	}
	for w.g.headerBudget.used.Load() < maxHeaderMemory-each { // as many as there is room for
		time.Sleep(time.Millisecond)
	}
	code, body := w.ask(head)
	if code != 503 || !strings.Contains(body, "try the same again when others have ended") && !strings.Contains(body, "try again when others have ended") {
		t.Errorf("%d %q", code, body)
	}
	if used := w.g.headerBudget.used.Load(); used > maxHeaderMemory {
		t.Errorf("%d bytes are taken", used)
	}
	for _, c := range held {
		c.Close()
	}
	for w.g.headerBudget.used.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	if code, body := w.ask(head + "x"); code != 200 {
		t.Errorf("with room: %d %q", code, body)
	}
}
