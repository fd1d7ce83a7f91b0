package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "session limiter", func(args []string) {
	last := unix.Prlimit(0, unix.RLIMIT_FSIZE, nil, &unix.Rlimit{})
	for _, name := range args {
		text, _ := os.ReadFile(name)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		for _, resource := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_NOFILE, unix.RLIMIT_CPU, unix.RLIMIT_AS} {
			var limit unix.Rlimit
			unix.Prlimit(pid, resource, nil, &limit)
			limit.Cur = 2
			fmt.Println(unix.Prlimit(pid, resource, &limit, nil))
		}
	}
	fmt.Println("own", last, unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 100, Max: 100}))
})

// TestKernelCommandsOfASessionSetNoLimitsOfOthers: not of a tool's, not of its warden's, which would write part of what it judged.
func TestKernelCommandsOfASessionSetNoLimitsOfOthers(t *testing.T) {
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		dir := "${TMPDIR:-/tmp}"
		victim := s.sh("echo $PPID > " + dir + "/warden; echo $$ > " + dir + "/tool; exec sleep 1000")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		at := outputOf(t, s.sh("while ! [ -s "+dir+"/tool ]; do :; done; echo "+dir))
		got := outputOf(t, s.program("session limiter", at+"/warden", at+"/tool"))
		if want := strings.Repeat("operation not permitted\n", 8) + "own <nil> <nil>"; got != want {
			t.Errorf("ESCAPE: another command's limits: %q", got)
		}
		victim.Cancel()
		victim.Wait()
	})
}
