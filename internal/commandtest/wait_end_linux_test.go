package commandtest

import (
	"bytes"
	"os/exec"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelWaitIsTheLast: when Wait has returned, by whatever method, no descriptor of
// the run is open, and its goroutine has nothing left to do.
func TestKernelWaitIsTheLast(t *testing.T) {
	kerneltest.Long(t)
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		for name, run := range map[string]func() error{
			"Run": func() error { c := s.Command("/bin/true"); c.Dir = dir; return c.Run() },
			"the embedded Run": func() error {
				c := s.Command("/bin/true")
				c.Dir = dir
				return c.Cmd.Run()
			},
			"a wrapped Run": func() error {
				c := exec.Command("/bin/true")
				c.Dir = dir
				if err := s.Wrap(c); err != nil {
					return err
				}
				return c.Run()
			},
		} {
			before := takeInventory(t)
			busy := 0
			for range 30 {
				if err := run(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				all := make([]byte, 1<<20)
				if all = all[:runtime.Stack(all, true)]; bytes.Contains(all, []byte("stage.(*Control)")) {
					busy++
				}
			}
			if busy > 0 {
				t.Errorf("%s: after %d of 30 the control socket or the mounts were still being closed", name, busy)
			}
			if left := leftOver(t, before); left != "" {
				t.Errorf("%s: left open: %s", name, left)
			}
		}
	})
}
