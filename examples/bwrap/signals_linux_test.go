package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelEndsWhileItWaits: a signal ends it before the command is there, while
// it waits for the caller, and what it has made inside with it.
func TestKernelEndsWhileItWaits(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			// What this process was started to ignore, as by nohup, its children would ignore.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			for _, waits := range []string{"--block-fd", "--userns-block-fd"} {
				for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
					info, infoIn := pipe(t)
					blockOut, _ := pipe(t)
					cmd := bwrap(slices.Concat([]string{"--unshare-user", "--unshare-pid", "--info-fd", "3", waits, "4"}, all, []string{"true"})...)
					cmd.ExtraFiles = []*os.File{infoIn, blockOut}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					infoIn.Close()
					var first map[string]int
					if err := json.NewDecoder(info).Decode(&first); err != nil {
						t.Fatal(err)
					}
					inside, err := unix.PidfdOpen(first["child-pid"], 0)
					if err != nil {
						t.Fatal(err)
					}
					cmd.Process.Signal(s)
					cmd.Wait()
					if w := cmd.ProcessState.Sys().(syscall.WaitStatus); !w.Signaled() || w.Signal() != s {
						t.Errorf("%s, %v: %v", waits, s, cmd.ProcessState)
					}
					for {
						if n, err := unix.Poll([]unix.PollFd{{Fd: int32(inside), Events: unix.POLLIN}}, -1); n == 1 || err != unix.EINTR {
							break
						}
					}
					unix.Close(inside)
				}
			}
		})
	})
}

// TestKernelWaitsForNoFifo: an earlier command may have put one in the place of a file.
func TestKernelWaitsForNoFifo(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("long text"), 0o600); err != nil {
				t.Fatal(err)
			}
			reader := -1
			for _, test := range []struct {
				name, at, says string
				args           []string
				read           bool
			}{
				{"a lock", fifo, "Unable to lock file", []string{"--lock-file", fifo}, false},
				{"a file to write", fifo, "Can't create file", []string{"--file", "3", fifo}, false},
				{"a file to write that is read from", fifo, "Can't create file", []string{"--file", "3", fifo}, true},
				{"a lock on a file", file, "", []string{"--lock-file", file}, false},
				{"a file that is written", file, "", []string{"--file", "3", file}, false},
			} {
				r, w := pipe(t)
				w.WriteString("text")
				w.Close()
				if test.read {
					var err error
					if reader, err = unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
						t.Fatal(err)
					}
				}
				cmd := bwrap(slices.Concat(all, []string{"--bind", dir, dir}, test.args, []string{"true"})...)
				cmd.ExtraFiles = []*os.File{r}
				out, err := cmd.CombinedOutput()
				if (err != nil) != (test.says != "") || !strings.Contains(string(out), test.says) {
					t.Errorf("%s: %v %s", test.name, err, out)
				}
			}
			unix.Close(reader)
			if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
				t.Errorf("the file is %q, %v", text, err)
			}
		})
	})
}
