package sandbox

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// The tool that binds sockets which wait when they are closed, and prints what is left of that.
var _ = offer(programs, "linger", func([]string) {
	for _, l := range []unix.Linger{{Onoff: 1, Linger: 1000}, {Onoff: 1}} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		fmt.Println(err, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &l))
		fmt.Println(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER)
		fmt.Println(on, err)
	}
})

// TestKernelASocketThatLingersHoldsUpNoSupervisor: the supervisor may be the last who closes a socket that it binds.
func TestKernelASocketThatLingersHoldsUpNoSupervisor(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, _ walls) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.Files.Read = append(p.Files.Read, exe)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		out, err := hostile(t, s, "linger").CombinedOutput()
		if want := "<nil> <nil>\n<nil>\n0 <nil>\n<nil> <nil>\n<nil>\n1 <nil>\n"; err != nil || string(out) != want {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
