package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

func TestUpgradeToWebSocket(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			fmt.Fprint(rw, "no upgrade"+r.Header.Get("Upgrade"))
			return
		}
		conn, b, _ := rw.(http.Hijacker).Hijack()
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := b.ReadString('\n')
		io.WriteString(conn, "echo "+line)
	})
	for _, inside := range []bool{false, true} {
		var conn net.Conn
		var r *bufio.Reader
		target := "http://example.com/"
		if inside {
			conn, r = w.connect("example.com:80")
			target = "/"
		} else {
			conn, r = w.raw("")
		}
		io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatal(resp, err)
		}
		io.WriteString(conn, "\x81\x00 this is no HTTP\n")
		if line, _ := r.ReadString('\n'); line != "echo \x81\x00 this is no HTTP\n" {
			t.Errorf("inside %v: %q", inside, line)
		}
	}
	if _, body := w.ask("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"); body != "no upgrade" {
		t.Errorf("h2c: %q", body)
	}
}
