package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// tracedCall is a line of strace -e trace=%file: the call, its path and what it returned.
var tracedCall = regexp.MustCompile(`^(\w+)\((?:AT_FDCWD, )?"([^"]*)".* = (-?\d+)`)

var tracedOperations = map[string]string{
	"open": "open for reading", "openat": "open for reading", "execve": "execute",
	"stat": "look at", "lstat": "look at", "newfstatat": "look at", "statx": "look at", "access": "look at", "faccessat": "look at", "faccessat2": "look at",
}

// TestKernelWatchAgreesWithStrace: of what a shell, cat and ls do with random paths, Files.Watch records what strace sees succeed outside and
// the policy does not show, and nothing that strace sees fail outside.
func TestKernelWatchAgreesWithStrace(t *testing.T) {
	kerneltest.Heavy(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace, which is not installed")
	}
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		s, base := watchedSandbox(t, w)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		parts := []string{"read/0/file", "read/absent", "write/0/file", "secret", "secret/0", "secret/0/file", "secret/absent", "secret/closed", "secret/program", "absent/x", "read/to-secret/0/file", "write/to-file",
			"read/nowhere", "secret/to-read/file", "read/0/file/x", "read/0/program", "read/around"}
		var script strings.Builder
		for range 60 {
			p := filepath.Join(base, parts[r.IntN(len(parts))])
			do := []string{"cat %s", "test -e %s", "ls -dL %s"}[r.IntN(3)]
			if filepath.Base(p) == "program" {
				do = "%s"
			}
			fmt.Fprintf(&script, do+" >/dev/null 2>&1\n", p)
		}
		script.WriteString("exit 0\n")
		trace := filepath.Join(t.TempDir(), "trace")
		bare := exec.Command(strace, "-ff", "-qq", "-s", "4096", "-e", "trace=%file", "-o", trace, "/bin/sh", "-c", script.String())
		bare.Dir = "/"
		if out, err := bare.CombinedOutput(); err != nil {
			t.Skipf("needs a kernel that lets strace trace: %v %s", err, out)
		}
		c := s.Command("/bin/sh", "-c", script.String())
		c.Dir = "/"
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
		var text []byte
		traces, _ := filepath.Glob(trace + ".*") // one of each process: no call is interrupted by another's line
		for _, file := range traces {
			part, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, part...)
		}
		works, fails, said := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(string(text)) {
			call := tracedCall.FindStringSubmatch(line)
			if call == nil || tracedOperations[call[1]] == "" || !strings.HasPrefix(call[2], base+"/") {
				continue
			}
			outcome := works
			if strings.HasPrefix(call[3], "-") {
				outcome = fails
			}
			outcome[tracedOperations[call[1]]+" "+leads(call[2], true)] = true
		}
		for _, v := range c.Report().Violations {
			if strings.HasPrefix(v.Path, base+"/") {
				said[v.Operation+" "+leads(v.Path, true)] = true
			}
		}
		for key := range said {
			if !works[key] {
				t.Errorf("recorded, but strace saw it fail outside (%v), or not at all: %s", fails[key], key)
			}
		}
		for key := range works {
			if strings.Contains(key, " "+base+"/secret") && !said[key] {
				t.Errorf("not recorded, and strace saw it succeed outside: %s", key)
			}
		}
		if len(said) == 0 || len(fails) == 0 {
			t.Errorf("%d were recorded, and %d failed outside", len(said), len(fails))
		}
	})
}
