package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelOpenObeysItsContextWhileItStarts: the stage was stopped on its way.
func TestKernelOpenObeysItsContextWhileItStarts(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		of := attackSandbox(t, attackPolicy(t, "", w), w)
		within(t, "Open", func() error {
			for range 1000 {
				ctx, cancel := context.WithCancel(t.Context())
				stopped := make(chan int)
				go func() {
					for {
						list := childrenOf(os.Getpid())
						if len(list) == 0 {
							continue
						}
						// Before its execve it holds up os/exec, which shares its memory (vfork(2)).
						if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", list[0])); string(name) == "holdfast/init\n" && unix.Kill(list[0], unix.SIGSTOP) == nil {
							cancel()
							stopped <- list[0]
							return
						}
					}
				}()
				s, err := of.Open(ctx)
				if pid := <-stopped; err != nil {
					if !errors.Is(err, context.Canceled) || len(childrenOf(os.Getpid())) > 0 {
						return fmt.Errorf("%w, with the processes %v", err, childrenOf(os.Getpid()))
					}
					return nil
				} else if unix.Kill(pid, unix.SIGCONT); true { // it was faster
					s.Close()
				}
			}
			return errors.New("no stage was stopped on its way")
		})
	})
}
