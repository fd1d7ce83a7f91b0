package sandbox

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// The tool that opens a message queue of the name it is told, which another process may have, then makes one of that name for
// itself, and uses it.
var _ = offer(programs, "queue", func(args []string) {
	_, err := openQueue(args[0], unix.O_RDWR)
	fmt.Println("another's:", err)
	q, err := openQueue(args[0], unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	fmt.Println("its own:", err)
	if err != nil {
		return
	}
	b := []byte("hello")
	fmt.Println("sent:", rawCall(unix.SYS_MQ_TIMEDSEND, uintptr(q), uintptr(unsafe.Pointer(&b[0])), 5, 1, 0))
	fmt.Println("received:", rawCall(unix.SYS_MQ_TIMEDRECEIVE, uintptr(q), uintptr(unsafe.Pointer(&make([]byte, 64)[0])), 64, 0, 0) == nil)
	names, _ := os.ReadDir("/dev/mqueue")
	for _, n := range names {
		fmt.Println("there:", n.Name() == args[0])
	}
	if len(args) == 1 { // else it is left behind
		fmt.Println("removed:", rawCall(unix.SYS_MQ_UNLINK, cstring(args[0])))
	}
})

// openQueue opens a queue with room for a few small messages.
func openQueue(name string, flags int) (int, error) {
	room := [8]int64{0, 2, 64} // struct mq_attr: flags, messages, bytes of each
	at, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	q, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(at)), uintptr(flags), 0o600, uintptr(unsafe.Pointer(&room)), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(q), nil
}

// TestKernelMessageQueuesAreTheSandboxs: a tool has POSIX message queues, and no run has the harness's or another run's; where
// there is no ipc namespace it has none.
func TestKernelMessageQueuesAreTheSandboxs(t *testing.T) {
	for _, w := range []walls{{name: allWalls}, {name: noNamespaces, without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{"files", "processes", "network"}}} {
		t.Run(w.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without}, func(t *testing.T) {
					name := fmt.Sprintf("holdfast-%d", os.Getpid())
					q, err := openQueue(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
					if err != nil {
						t.Skip("needs POSIX message queues: ", err)
					}
					defer rawCall(unix.SYS_MQ_UNLINK, cstring(name))
					defer unix.Close(q)
					s := attackSandbox(t, attackPolicy(t, "", w), w)
					for _, args := range [][]string{{"queue", name, "left"}, {"queue", name}} { // the second finds nothing of the first
						out, err := hostile(t, s, args...).CombinedOutput()
						want := "another's: no such file or directory\nits own: <nil>\nsent: <nil>\nreceived: true\nthere: true\n"
						switch {
						case w.without != nil:
							want = fmt.Sprintf("another's: %v\nits own: %[1]v\n", unix.ENOSYS)
						case len(args) == 2:
							want += "removed: <nil>\n"
						}
						if string(out) != want || err != nil {
							t.Errorf("%v: got\n%s\nwant\n%s", err, out, want)
						}
					}
					left, err := openQueue(name, unix.O_RDWR)
					if err != nil {
						t.Errorf("the harness's queue is gone: %v", err)
					}
					unix.Close(left)
				})
			})
		})
	}
}
