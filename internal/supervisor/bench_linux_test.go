package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkCall reports the time of one call, with and without a supervisor, by the depth of its directory in the root: that of the
// fastest 50 of 1,000 calls in a row, since what else the machine does can only add to it.
func BenchmarkCall(b *testing.B) {
	for _, op := range []string{"create", "write", "rename", "mkdir"} {
		for _, depth := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/depth=%d", op, depth), func(b *testing.B) { benchCall(b, op, depth, false) })
		}
		b.Run(op+"/unguarded", func(b *testing.B) { benchCall(b, op, 1, true) })
	}
}

// BenchmarkWatch reports the time of a call that Rules.Watch stops, and without it.
func BenchmarkWatch(b *testing.B) {
	for _, op := range []string{"read", "stat", "absent"} {
		b.Run(op, func(b *testing.B) { benchCall(b, op, 1, false) })
		b.Run(op+"/unwatched", func(b *testing.B) { benchCall(b, op, 1, true) })
	}
}

func benchCall(b *testing.B, op string, depth int, silent bool) {
	total, n := 0, 0
	for b.Loop() {
		dir, rules := workspace(b, self)
		rules.Watch = op == "read" || op == "stat" || op == "absent"
		script := fmt.Sprintf(`"$SELF" time %s %d`, op, depth)
		out, code := run(b, job{Rules: rules, Dir: dir, UID: self, Silent: silent, Made: record(b, dir), Argv: []string{"bash", "-c", script}, Env: []string{roleEnv + "=act"}})
		ns, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(out), "NS "))
		if err != nil || code != 0 {
			b.Fatal(out, err)
		}
		total, n = total+ns, n+1
	}
	b.ReportMetric(float64(total)/float64(n), "ns/call")
}

// timeCalls makes 1,000 calls in a directory of this depth and prints the time of one in nanoseconds.
func timeCalls(op, levels string) error {
	depth, err := strconv.Atoi(levels)
	if err != nil {
		return err
	}
	for i := 1; i < depth; i++ {
		if err := errors.Join(os.Mkdir("d", 0o755), os.Chdir("d")); err != nil {
			return err
		}
	}
	if err := os.WriteFile("f-1", nil, 0o644); err != nil {
		return err
	}
	best, begin := time.Hour, time.Now()
	for i := range 1000 {
		name, fd := fmt.Sprintf("f%d", i), -1
		switch op {
		case "create":
			fd, err = unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		case "write":
			fd, err = unix.Open("f-1", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		case "read":
			fd, err = unix.Open("f-1", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		case "stat":
			err = unix.Lstat("f-1", &unix.Stat_t{})
		case "absent":
			unix.Lstat("absent", &unix.Stat_t{})
		case "rename":
			err = unix.Rename(fmt.Sprintf("f%d", i-1), name)
		case "mkdir":
			err = unix.Mkdir(name, 0o755)
		}
		if err != nil {
			return err
		}
		unix.Close(fd)
		if i%50 == 49 {
			best, begin = min(best, time.Since(begin)), time.Now()
		}
	}
	fmt.Println("NS", best.Nanoseconds()/50)
	return nil
}
