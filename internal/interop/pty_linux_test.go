package interop

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func init() {
	servers["say"] = func() { println(confinement()) }
}

func TestKernelPTY(t *testing.T) {
	for name, start := range map[string]func(c *sandbox.Cmd) (io.Reader, error){
		"Start": func(c *sandbox.Cmd) (io.Reader, error) { return pty.Start(c.Cmd) },
		"StartWithSize": func(c *sandbox.Cmd) (io.Reader, error) {
			return pty.StartWithSize(c.Cmd, &pty.Winsize{Rows: 40, Cols: 100})
		},
		"StartWithAttrs": func(c *sandbox.Cmd) (io.Reader, error) {
			return pty.StartWithAttrs(c.Cmd, nil, &syscall.SysProcAttr{Setsid: true, Setctty: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := server(t, "say")
			terminal, err := start(c)
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(terminal).ReadString('\n')
			if err != nil || strings.TrimRight(line, "\r\n") != confined {
				t.Errorf("the tool said %q, %v", line, err)
			}
			if err := c.Wait(); err != nil {
				t.Errorf("Wait: %v", err)
			}
			if c.Report().Bound(policy.BoundFiles).State != sandbox.Held {
				t.Errorf("%v", c.Report())
			}
		})
	}
}
