package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestNothingFollowsACONNECTThatIsRefused: what follows one has not been looked at,
// since the client may have anything to say to its target.
func TestNothingFollowsACONNECTThatIsRefused(t *testing.T) {
	hits := make(chan string, 100)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}, Key: "k3y"}, func(rw http.ResponseWriter, r *http.Request) { hits <- "tls " + r.Host })
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { hits <- r.Host })
	const key = "Proxy-Authorization: Basic OmszeQ=="
	through := func(target string) (net.Conn, *bufio.Reader) {
		c, r := w.raw("CONNECT " + target + " HTTP/1.1\r\n" + key + "\r\n\r\n")
		if res, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"}); err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		return c, r
	}
	const refused = "CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example\r\n\r\n"
	for name, enter := range map[string]func() (net.Conn, *bufio.Reader){
		"for want of the key": func() (net.Conn, *bufio.Reader) { return w.raw("") },
		"in a tunnel": func() (net.Conn, *bufio.Reader) {
			c, r := through("example.com:80")
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
			answerOf(r)
			<-hits
			return c, r
		},
		"in TLS": func() (net.Conn, *bufio.Reader) {
			c, _ := through("example.com:443")
			s := tls.Client(c, &tls.Config{ServerName: "example.com", RootCAs: w.trust})
			return s, bufio.NewReader(s)
		},
	} {
		for _, second := range []string{
			"GET http://example.com/ HTTP/1.1\nHost: example.com\nX: a\n b\n" + key + "\n\n", "GET / HTTP/1.1\nHost: example.com\n\n", preface,
			"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		} {
			c, r := enter()
			go func() {
				io.WriteString(c, refused+second)
				c.(interface{ CloseWrite() error }).CloseWrite()
			}()
			if code, _ := answerOf(r); code != 407 && code != 403 {
				t.Errorf("%s: CONNECT is answered by %d", name, code)
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("%s: %q is answered by %q", name, second, rest)
			}
			c.Close()
		}
	}
	if len(hits) > 0 {
		t.Errorf("a server was asked for %s", <-hits)
	}
}

// TestTheRequestAfterAResponseIsLookedAtToo, at every door that HTTP comes by.
func TestTheRequestAfterAResponseIsLookedAtToo(t *testing.T) {
	hits := make(chan string, 10)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) { hits <- r.URL.Path })
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { hits <- r.URL.Path })
	for name, enter := range map[string]func() (io.Writer, *bufio.Reader){
		"the proxy": func() (io.Writer, *bufio.Reader) {
			c, r := w.raw("")
			return c, r
		},
		"a tunnel": func() (io.Writer, *bufio.Reader) {
			c, r := w.connect("example.com:80")
			return c, r
		},
		"TLS": func() (io.Writer, *bufio.Reader) {
			c, err := w.tls("example.com:443", "example.com", "http/1.1")
			if err != nil {
				t.Fatal(err)
			}
			return c, bufio.NewReader(c)
		},
	} {
		at := ""
		if name == "the proxy" {
			at = "http://example.com"
		}
		for _, second := range []string{
			"GET %s/second HTTP/1.1\r\nHost: example.com\r\n" + strings.Repeat("a:\r\n", 2*maxRequestFields) + "\r\n", "POST %s/second HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
			"GET %s/second HTTP/1.1\r\nHost: example.com\r\nX : a\r\n\r\n",
		} {
			c, r := enter()
			fmt.Fprintf(c, "GET %s/first HTTP/1.1\r\nHost: example.com\r\n\r\n", at)
			if code, _ := answerOf(r); code != 200 || <-hits != "/first" {
				t.Fatalf("%s: the first request is answered by %d", name, code)
			}
			fmt.Fprintf(c, second, at)
			if code, _ := answerOf(r); code != 400 && code != 431 && code != 501 && code != 0 {
				t.Errorf("%s: %q is answered by %d", name, second, code)
			}
		}
	}
	if len(hits) > 0 {
		t.Errorf("a server was asked for %s", <-hits)
	}
}

// TestEveryRequestBringsTheKeyInItsPlace: nothing else in a request is taken for it,
// and a connection is not trusted for what has come before.
func TestEveryRequestBringsTheKeyInItsPlace(t *testing.T) {
	w := newWorld(t, Config{Key: "k3y"}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {})
	request := func(header string) string {
		return "GET http://example.com/?k3y HTTP/1.1\r\nHost: example.com\r\n" + header + "\r\n"
	}
	right := "Proxy-Authorization: Basic " + b64("u:k3y") + "\r\n"
	for _, header := range []string{
		"Authorization: Basic " + b64("u:k3y") + "\r\n", "Proxy-Authorization: Basic " + b64("k3y:") + "\r\n", "Proxy-Authorization: Basic " + b64("k3y") + "\r\n", "Proxy-Authorization: k3y\r\n",
		"Proxy-Authorization: Basic " + b64("u:k3") + "\r\n", "Proxy-Authorization: Basic " + b64("u:k3yy") + "\r\n", "Proxy-Authorization: Basic " + b64("u:K3Y") + "\r\n",
		"Proxy_Authorization: Basic " + b64("u:k3y") + "\r\n", "Cookie: k3y\r\n", "Proxy-Authorization: Basic " + b64("u:no") + "\r\n" + right,
	} {
		for _, another := range []string{"", "Connection: x\r\n"} { // that a session has, and that net/http has
			if code, _ := w.ask(request(another + header)); code != 407 {
				t.Errorf("%q: %d", another+header, code)
			}
		}
	}
	_, r := w.raw(request(right) + request("") + request(right))
	for i, want := range []int{200, 407, 200} {
		if code, _ := answerOf(r); code != want {
			t.Errorf("request %d of one connection: %d, want %d", i, code, want)
		}
	}
	if w.dials() > 2 {
		t.Errorf("%d connections", w.dials())
	}
}

// TestConnectionNamesNothingThatCounts: a client can have a proxy drop what it names
// in Connection; what frames and judges a request is not among it.
func TestConnectionNamesNothingThatCounts(t *testing.T) {
	got := make(chan string, 10)
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "judged.com", Methods: []string{"POST"}, Paths: []string{"/ok"}}}}}, "example.com", "judged.com")
	for _, name := range []string{"example.com", "judged.com"} {
		w.web(name, 80, func(rw http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			got <- fmt.Sprint(r.Host, r.ContentLength, string(b), err, r.Header["X-Http-Method-Override"], r.Header["Proxy-Authorization"])
		})
		const drop = "Connection: Host, Content-Length, Transfer-Encoding, X-HTTP-Method-Override, close\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n"
		for body, want := range map[string]string{
			"Content-Length: 37\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x.y\r\n\r\n":                            name + "37GET /smuggled HTTP/1.1\r\nHost: x.y\r\n\r\n<nil> [] []",
			"Transfer-Encoding: chunked\r\n\r\n25\r\nGET /smuggled HTTP/1.1\r\nHost: x.y\r\n\r\n\r\n0\r\n\r\n": name + "-1GET /smuggled HTTP/1.1\r\nHost: x.y\r\n\r\n<nil> [] []",
		} {
			if code, text := w.ask("POST http://" + name + "/ok HTTP/1.1\r\nHost: " + name + "\r\nX-HTTP-Method-Override: DELETE\r\n" + drop + body); code != 200 {
				t.Errorf("%s: %d %s", name, code, text)
				continue
			}
			if g := <-got; g != want {
				t.Errorf("the server saw %q, want %q", g, want)
			}
		}
	}
	if code, _ := w.ask("POST http://judged.com/admin HTTP/1.1\r\nHost: judged.com\r\nConnection: Host\r\nContent-Length: 0\r\n\r\n"); code != 403 {
		t.Errorf("a path that is not allowed: %d", code)
	}
	if len(got) > 0 {
		t.Errorf("the server was asked once more: %s", <-got)
	}
}

// TestABodyThatWaitsForALeaveIsNoRequest: Expect: 100-continue lets a client send
// its body or not.
func TestABodyThatWaitsForALeaveIsNoRequest(t *testing.T) {
	hits := make(chan string, 10)
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		hits <- r.URL.Path + string(b)
	})
	second := "GET http://example.com/second HTTP/1.1\r\nHost: example.com\r\n\r\n"
	head := "POST http://%s/first HTTP/1.1\r\nHost: %[1]s\r\nExpect: %s\r\nContent-Length: %d\r\n\r\n"
	for host, want := range map[string]int{"denied.example": 403, "example.com": 200} {
		c, r := w.raw(fmt.Sprintf(head, host, "100-continue", len(second)))
		if want == 200 {
			if line, _ := r.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100 ") {
				t.Errorf("%q", line)
			}
			r.ReadString('\n')
		}
		io.WriteString(c, second)
		if code, body := answerOf(r); code != want {
			t.Errorf("%s: %d %s", host, code, body)
		}
		c.(*net.TCPConn).CloseWrite()
		if rest, _ := io.ReadAll(r); len(rest) > 0 {
			t.Errorf("%s: the body was answered by %q", host, rest)
		}
	}
	if code, _ := w.ask(fmt.Sprintf(head, "example.com", "something", len(second)) + second); code != 417 {
		t.Errorf("another expectation: %d", code)
	}
	if len(hits) != 1 || <-hits != "/first"+second {
		t.Error("the server was asked for something else")
	}
}

// TestABodyThatServersDoNotReadIsTheLastOfItsConnection: to a server that does not
// read a body, of GET or at the path asked for of POST, it is the next request, which the proxy has not judged.
func TestABodyThatServersDoNotReadIsTheLastOfItsConnection(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Requests: []policy.RequestRule{{Host: "example.com", Methods: []string{"GET", "POST"}, Paths: []string{"/ok"}}}}}, nil)
	lines := make(chan string, 100)
	for port, wrap := range map[uint16]func(net.Conn) net.Conn{
		443: func(c net.Conn) net.Conn { return tls.Server(c, &tls.Config{Certificates: w.server.TLS.Certificates}) },
		80:  func(c net.Conn) net.Conn { return c },
	} {
		l := listen(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go deaf(wrap(c), lines)
			}
		}()
		w.put("example.com", port, l.Addr().String())
		w.put("api.example.com", port, l.Addr().String()) // of which no rule speaks
	}
	const smuggled = "DELETE /admin HTTP/1.1\r\nHost: example.com\r\n\r\n"
	body := map[string]string{
		"whole": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled), "in chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
	}
	for _, ask := range []struct{ method, at string }{{"GET", "example.com:443"}, {"GET", "example.com:80"}, {"POST", "example.com:443"}, {"POST", "example.com:80"}, {"DELETE", "api.example.com:80"}} {
		for how, text := range body {
			c, r := w.connect(ask.at)
			host, port, _ := net.SplitHostPort(ask.at)
			if port == "443" {
				c = tls.Client(c, &tls.Config{ServerName: host, RootCAs: w.trust})
				r = bufio.NewReader(c)
			}
			fmt.Fprintf(c, "%s /ok HTTP/1.1\r\nHost: %s\r\n%s", ask.method, host, text)
			if code, said := answerOf(r); code != 200 {
				t.Errorf("%v, %s: %d %s", ask, how, code, said)
			}
			if line := <-lines; line != ask.method+" /ok HTTP/1.1" {
				t.Errorf("%v, %s: %q", ask, how, line)
			}
			if line := <-lines; line != "" {
				t.Errorf("%v, %s: the server has taken a body for the request %q", ask, how, line)
			}
			c.Close()
		}
	}
}

// deaf is a server that reads no bodies. It tells of the first line of each request,
// and "" at the connection's end.
func deaf(c net.Conn, lines chan<- string) {
	defer c.Close()
	defer func() { lines <- "" }()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		lines <- strings.TrimSpace(line)
		last := false
		for line != "\r\n" && err == nil {
			line, err = in.ReadString('\n')
			last = last || line == "Connection: close\r\n"
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if last { // to close with bytes unread would take the answer back
			io.Copy(io.Discard, in)
			return
		}
	}
}

// TestAServerGetsANameInItsCanonicalForm where a Host field names what an address was
// asked for.
func TestAServerGetsANameInItsCanonicalForm(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Hosts: []string{public.String()}, Deny: []string{"denied.example", "xn--bcher-kva.example"}}})
	w.web("x", 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) })
	for host, want := range map[string]string{
		"NAMED.example.": "200 named.example", "named.example:80": "200 named.example", public.String(): "200 " + public.String(),
		"Denied.example.": "403 ", "xn--bcher-kva.EXAMPLE": "403 ", "bücher.example": "40", "93.184.216.35": "403 ", "named.example:81": "403 ",
	} {
		code, body := w.ask("GET http://" + public.String() + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		inside, r := w.connect(public.String() + ":80")
		io.WriteString(inside, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		codeInside, bodyInside := answerOf(r)
		if got := fmt.Sprint(codeInside, " ", bodyInside); !strings.HasPrefix(got, want) || codeInside == 200 && got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
		// A proxy puts the URL's host in the place of Host (RFC 9112, 3.2.2).
		if got := fmt.Sprint(code, " ", body); got != "200 "+public.String() && !strings.HasPrefix(got, "400 ") {
			t.Errorf("%s, by the proxy: %q", host, got)
		}
	}
}
