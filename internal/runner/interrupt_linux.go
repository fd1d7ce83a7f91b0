package runner

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// interruptThreads ends what this process's threads wait for in the kernel, where a signal does. It is the one by which Go's runtime has a
// goroutine give up its thread, which any thread may get at any time; system calls that it interrupts go on.
func interruptThreads() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			unix.Tgkill(os.Getpid(), id, unix.SIGURG)
		}
	}
}
