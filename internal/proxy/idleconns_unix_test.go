//go:build unix

package proxy

import (
	"fmt"
	"syscall"
	"testing"
)

const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

// arrived waits until the one connection that is kept has something to read, or has ended.
func (s *sender) arrived() {
	s.t.Helper()
	s.idle.mu.Lock()
	c := s.idle.conns[0]
	s.idle.mu.Unlock()
	raw, err := unwrapConn(c.metered).(syscall.Conn).SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestAConnectionThatIsNotQuietIsNotUsedAgain: whatever a server has said or done since its last response, the next
// request is made on another connection, and is not written to this one: with a body or without.
func TestAConnectionThatIsNotQuietIsNotUsedAgain(t *testing.T) {
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		for name, does := range map[string]func(c *servedConn){
			"nothing":                nil,
			"a response":             func(c *servedConn) { c.say(forged); c.asked() },
			"one byte":               func(c *servedConn) { c.say("H"); c.asked() },
			"the end":                func(c *servedConn) {},
			"the end, without TLS's": func(c *servedConn) { c.together.Close() },
			"a response and the end": func(c *servedConn) { c.say(forged) },
		} {
			for _, body := range []string{"", "a body"} {
				now := make(chan struct{})
				s := newSender(t, w, secure, func(n int, c *servedConn) {
					if n > 1 || does == nil {
						c.answers()
						return
					}
					c.asked()
					c.say(hello)
					<-now
					does(c)
				})
				want := int32(1)
				for i := range 2 {
					if status, text, err := s.send("POST", body); status != 200 || text != "hello" || err != nil {
						t.Errorf("%s, %q: %d %q %v", name, body, status, text, err)
					}
					if i == 0 && does != nil {
						want = 2
						close(now)
						s.arrived()
					}
				}
				if made, read := s.connections.Load(), s.requests.Load(); made != want || read != 2 {
					t.Errorf("%s, %q: %d connections, %d requests were read", name, body, made, read)
				}
			}
		}
	})
}

// TestBytesBeyondAResponseSpoilTheConnection: they come with the response, in TLS as a record besides or in the same one.
func TestBytesBeyondAResponseSpoilTheConnection(t *testing.T) {
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		for _, c := range []struct{ method, response string }{
			{"GET", hello},
			{"GET", "HTTP/1.1 103 Early Hints\r\n\r\n" + hello},
			{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
			{"GET", "HTTP/1.1 204 No Content\r\n\r\n"},
			{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"},
			{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
			{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
			{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"},
			{"POST", hello},
		} {
			for _, beyond := range []string{"", "\r\n", "0", forged} {
				for _, apart := range []bool{false, true} {
					s := newSender(t, w, secure, func(_ int, conn *servedConn) {
						conn.asked()
						if apart {
							conn.say(c.response, beyond)
						} else {
							conn.say(c.response + beyond)
						}
						conn.asked()
					})
					name := fmt.Sprintf("%s %q and %q, apart %v", c.method, c.response, beyond, apart)
					if _, _, err := s.send(c.method, map[string]string{"POST": "a body"}[c.method]); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					kept := s.idle.take("example.com")
					if kept != nil {
						kept.Close()
					}
					if spoilt := kept == nil; spoilt != (beyond != "") {
						t.Errorf("%s: spoilt %v", name, spoilt)
					}
				}
			}
		}
	})
}
