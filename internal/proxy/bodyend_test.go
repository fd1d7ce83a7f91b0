package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// pipelined are requests that clients send without waiting for an answer, and the answers. AT is the
// host in a URL.
var pipelined = []struct{ sent, want string }{
	{"GET AT/a HTTP/1.1\r\nHost: example.com\r\n\r\n", "200 GET /a"},
	{"POST AT/b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n", "200 POST /b"},
	{"POST AT/c HTTP/1.1\r\nHost: example.com\r\nContent-Length: 6\r\n\r\nabc\r\n\n", `200 POST /c "abc\r\n\n"`},
	{"POST AT/d HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"0\";y\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", `200 POST /d "abc0\r\n\r\n0\r\n\r\n"`},
	{"POST AT/e HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n0001 \r\na\r\n00\r\nT: end\r\nU: 1\r\n\r\n", `200 POST /e "a" end`},
	{"POST AT/denied HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\n\r\nabcd", "403"},
	{"PUT AT/denied HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: end\r\n\r\n", "403"},
	{"POST AT/f HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", `100 200 POST /f "abc"`},
	{"POST AT/g HTTP/1.1\r\nHost: example.com\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("g", 9000), `200 POST /g "` + strings.Repeat("g", 9000) + `"`},
	{"POST AT/h HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n2328\r\n" + strings.Repeat("h", 9000) + "\r\n0\r\n\r\n", `200 POST /h "` + strings.Repeat("h", 9000) + `"`},
	{"HEAD AT/i HTTP/1.1\r\nHost: example.com\r\n\r\n", "200"},
	{"GET AT/j HTTP/1.1\r\nHost: example.com\r\n\r\n", "200 GET /j"},
}

// TestWhatIsBehindARequestIsTheNextOne, whatever pieces requests come in: nothing is given twice, lost, or taken for a part of
// another.
func TestWhatIsBehindARequestIsTheNextOne(t *testing.T) {
	answer := func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		text := r.Method + " " + r.URL.Path
		if len(b) > 0 {
			text += fmt.Sprintf(" %q", b)
		}
		rw.Header().Set("Content-Type", "text/plain")
		io.WriteString(rw, strings.TrimSpace(text+" "+r.Trailer.Get("T")))
	}
	// A host with a rule is sent one request with a body on a connection: each ends the client's, so that denials are in the other test.
	free := func(c struct{ sent, want string }) bool { return c.want != "403" }
	for name, each := range map[string]int{"at once": 1 << 20, "in pieces of a byte": 1, "of seven": 7, "of a thousand": 1000} {
		for _, way := range []string{"proxy", "tunnel", "intercepted"} {
			w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, answer)
			w.web("example.com", 80, answer)
			w.put("example.com", 443, w.server.Listener.Addr().String())
			var conn net.Conn
			at := ""
			switch way {
			case "proxy":
				conn, _ = w.raw("")
				at = "http://example.com"
			case "tunnel":
				conn, _ = w.connect("example.com:80")
			case "intercepted":
				raw, _ := w.connect("example.com:443")
				conn = tls.Client(raw, &tls.Config{ServerName: "example.com", RootCAs: w.trust})
			}
			var sent strings.Builder
			for _, c := range pipelined {
				if free(c) {
					sent.WriteString(strings.ReplaceAll(c.sent, "AT", at))
				}
			}
			go func() {
				for part := range slices.Chunk([]byte(sent.String()), each) {
					conn.Write(part)
				}
			}()
			in := bufio.NewReader(conn)
			for _, c := range pipelined {
				if !free(c) {
					continue
				}
				method, _, _ := strings.Cut(c.sent, " ")
				if got := answers(in, method); got != c.want {
					t.Errorf("%s, %s: %.100q is answered by %.100q", name, way, c.sent, got)
					break
				}
			}
			conn.Close()
			w.g.Close()
			if used := w.g.headerBudget.used.Load(); used != 0 {
				t.Errorf("%s, %s: %d bytes are not given back", name, way, used)
			}
		}
	}
}

// answers reads an answer, and what comes before it, as pipelined has it.
func answers(in *bufio.Reader, method string) string {
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return err.Error()
	}
	b, _ := io.ReadAll(res.Body)
	switch {
	case res.StatusCode == 100:
		return "100 " + answers(in, method)
	case res.StatusCode != 200:
		return fmt.Sprint(res.StatusCode)
	}
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", string(b)))
}

// TestARefusedRequestIsFollowedByTheNextOne, its body being read over.
func TestARefusedRequestIsFollowedByTheNextOne(t *testing.T) {
	w := newWorld(t, Config{})
	for name, each := range map[string]int{"at once": 1 << 20, "in pieces of a byte": 1, "of seven": 7} {
		conn, in := w.raw("")
		go func() {
			for _, c := range pipelined {
				if !strings.Contains(c.sent, "100-continue") { // whose refusal ends the connection
					for part := range slices.Chunk([]byte(strings.ReplaceAll(c.sent, "AT", "http://example.com")), each) {
						conn.Write(part)
					}
				}
			}
		}()
		for _, c := range pipelined {
			method, _, _ := strings.Cut(c.sent, " ")
			if got := ""; !strings.Contains(c.sent, "100-continue") {
				if got = answers(in, method); got != "403" {
					t.Fatalf("%s: %.100q is answered by %.100q", name, c.sent, got)
				}
			}
		}
		conn.Close()
	}
}

// TestAPipelinedHeaderIsCounted, behind a header and behind a body: of one that came in the same read net/http made 859 fields.
func TestAPipelinedHeaderIsCounted(t *testing.T) {
	var fields atomic.Int64
	w := newWorld(t, Config{}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		fields.Store(max(fields.Load(), int64(len(r.Header))))
		io.Copy(io.Discard, r.Body)
	})
	many := "GET http://good.com/ HTTP/1.1\nHost: good.com\n"
	for i := range 300 {
		many += fmt.Sprintf("%x:\n", 0x1000+i)
	}
	for name, first := range map[string]string{
		"a header":          "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n",
		"a body":            "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nContent-Length: 1\r\n\r\nx",
		"chunks":            "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"a trailer":         "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n",
		"an odd trailer":    "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\n\n",
		"a trailer's fault": "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + tiny(maxTrailer/len("abc:\r\n")+1) + "\r\n",
	} {
		fields.Store(0)
		c, in := w.raw(first + many + "\r\n\r\n")
		first, _ := answerOf(in)
		second, text := answerOf(in)
		if odd := strings.HasPrefix(name, "an odd") || strings.HasSuffix(name, "fault"); odd && first != 400 || !odd && second != 431 || fields.Load() > maxRequestFields {
			t.Errorf("behind %s: %d, %d %q, %d fields at the server", name, first, second, text, fields.Load())
		}
		c.Close()
	}
}

// TestATrailerIsBoundedAndCharged: net/http reads a request's trailer into a second map, beside that of the header.
func TestATrailerIsBoundedAndCharged(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	head := "POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
	for n, want := range map[int]int{0: 200, maxTrailer/len("abc:\r\n") - 1: 200, maxTrailer/len("abc:\r\n") + 1: 400, 600: 400} {
		if code, text := w.ask(head + tiny(n) + "\r\n"); code != want {
			t.Errorf("%d fields: %d %q", n, code, text)
		}
	}
	m := headMeter{budget: new(headerBudget), most: maxRequestFields, bytes: maxHeadBytes}
	m.count([]byte("POST / HTTP/1.1\r\n\r\n"))
	before := m.budget.used.Load()
	m.trailer()
	if n, whole, fault := m.count([]byte(tiny(100) + "\r\nGET")); n != len(tiny(100))+2 || !whole || fault != nil || m.budget.used.Load() < before+100*fieldCost {
		t.Error(n, whole, fault, m.budget.used.Load()-before)
	}
}

// TestABodyEndsWhereItDoes, however it comes.
func TestABodyEndsWhereItDoes(t *testing.T) {
	for body, length := range map[string]int64{
		"": 0, "abc": 3, "0\r\n": -1, "1\r\na\r\n0\r\n": -1, "0A;0\r\n0\r\n0\r\n0\r\n\r\n000\r\n": -1, "10 \r\n0123456789abcdef\r\n0;x\r\n": -1,
	} {
		for _, each := range []int{1, 2, 3, 100} {
			var m bodyMeter
			m.begin(length)
			n, trailer := 0, false
			for part := range slices.Chunk([]byte(body+"\r\nGET / HTTP/1.1"), each) {
				k, last := m.take(part)
				n, trailer = n+k, trailer || last
			}
			if n != len(body) || trailer != (length < 0) {
				t.Errorf("%q in pieces of %d: %d bytes, a trailer follows %v", body, each, n, trailer)
			}
		}
	}
}

// TestWhatIsBehindAConnectIsTheTunnels, all of it and in order, whether or not net/http has taken a byte of it.
func TestWhatIsBehindAConnectIsTheTunnels(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 9)
	for _, size := range []int{1, 2, 100, 5000, 100_000} {
		text := "\x00" + strings.Repeat("0123456789", size/10+1)[:size-1]
		c, in := w.raw("")
		go io.WriteString(c, "CONNECT good.com:9 HTTP/1.1\r\n\r\n"+text)
		if res, err := http.ReadResponse(in, &http.Request{Method: "CONNECT"}); err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		got := make([]byte, size)
		if _, err := io.ReadFull(in, got); err != nil || string(got) != text {
			t.Errorf("%d bytes: %v, %.20q", size, err, got)
		}
		c.Close()
	}
}

// FuzzBodies holds the end that a bodyMeter sees of a body in chunks against net/http's.
func FuzzBodies(f *testing.F) {
	for _, c := range pipelined {
		if _, body, _ := strings.Cut(c.sent, "\r\n\r\n"); strings.Contains(c.sent, "chunked") {
			f.Add(body)
		}
	}
	f.Add("0\r\na: b\n\nGET / HTTP/1.1\r\n\r\n")
	f.Add("1 ;0\r\na\r\n0 \r\n\r\n")
	f.Fuzz(func(t *testing.T, body string) {
		const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		text := head + body
		in := bufio.NewReaderSize(strings.NewReader(text), len(text)+16)
		r, err := http.ReadRequest(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // and nothing is read behind it
		}
		var m bodyMeter
		m.begin(-1)
		n, last := m.take([]byte(body))
		h := headMeter{budget: new(headerBudget), most: maxRequestFields, bytes: maxHeadBytes}
		h.trailer()
		k, whole, fault := h.count([]byte(body[n:]))
		if fault != nil {
			return // too long a trailer
		}
		if !last || !whole || len(body)-n-k != in.Buffered() {
			t.Errorf("%q: %d and %d of %d bytes, and net/http leaves %d", body, n, k, len(body), in.Buffered())
		}
	})
}
