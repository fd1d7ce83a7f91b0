package supervisor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelLocalSockets: the tool's processes meet at UNIX sockets of their own. They reach none of the host's that lies in what they can
// write, by no name, nor do they take the host's abstract names.
func TestKernelLocalSockets(t *testing.T) {
	for user, uid := range users(t) {
		for _, act := range []string{"localsockets", "hostsockets"} {
			t.Run(act+" "+user, func(t *testing.T) {
				dir, rules := workspace(t, uid)
				rules.Connects, rules.MemFile = []Endpoint{}, true
				path, abstract := filepath.Join(dir, "host.sock"), fmt.Sprintf("holdfast-local-%d-%s", os.Getpid(), act)
				servers := map[string]*server{path: serverOfUNIX(t, uid, path), path + "2": serverOfUNIX(t, uid, path+"2"), "@" + abstract: serverOfUNIX(t, uid, "@"+abstract)}
				if act == "hostsockets" {
					exchange(t, path+"2", filepath.Join(dir, "own.sock"))
				}
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoCalls: true, Argv: []string{"bash", "-ec", `"$SELF" ` + act + " " + abstract}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
				for name, s := range servers {
					if s.end(); s.accepted.Load() != 0 {
						t.Errorf("%s was connected to %d times", name, s.accepted.Load())
					}
				}
			})
		}
	}
}

func serverOfUNIX(t *testing.T, uid uint32, name string) *server {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	if l.(*net.UnixListener).SetUnlinkOnClose(false); name[0] != '@' {
		err = chown(name, uid) // else no second name could be made (proc_sys_fs(5), protected_hardlinks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l)
}

// exchange exchanges two names until the test ends, as soon as both are there.
func exchange(t *testing.T, a, b string) {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		}
	}()
	t.Cleanup(func() { stop.Store(true); <-done })
}
