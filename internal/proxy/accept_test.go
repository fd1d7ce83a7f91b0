package proxy

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

// A lackingListener fails once as net's does where the runtime cannot watch the new connection, or open it.
type lackingListener struct {
	net.Listener
	errs []error
}

func (l *lackingListener) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
}

// TestAProxyOutlastsWhatToolsUseUp: the epoll watches of a user are one number for all processes, and a tool of another sandbox
// can use them up: the proxy serves again when there are some.
func TestAProxyOutlastsWhatToolsUseUp(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE} {
		t.Run(errno.Error(), func(t *testing.T) {
			w := newWorld(t, Config{}, "good.com")
			l := listen(t)
			go w.g.Serve(&lackingListener{l, []error{errno, errno}}, HTTP)
			w.http = l.Addr().String()
			if status, body := w.ask("GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n"); status != 403 || !strings.Contains(body, "denied.example") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}
