package proxy

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
)

// TestAProxyOutlastsWhatToolsUseUp: the epoll watches of a user are one number for all processes, and a tool of another sandbox
// can use them up: the proxy serves again when there are some.
func TestAProxyOutlastsWhatToolsUseUp(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE} {
		t.Run(errno.Error(), func(t *testing.T) {
			w := newWorld(t, Config{}, "good.com")
			l := listen(t)
			go w.g.Serve(&fixture.LackingListener{Listener: l, Errs: []error{errno, errno}}, HTTP)
			w.http = l.Addr().String()
			if status, body := w.ask("GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n"); status != 403 || !strings.Contains(body, "denied.example") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}
