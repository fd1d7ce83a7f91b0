package seccomp

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(loadBenchmark); how != "" {
		os.Exit(loadOften(how))
	}
	kerneltest.Main(m)
}

var arches = [...]Arch{AMD64, ARM64}

// mustCompile returns f's program for a.
func mustCompile(tb testing.TB, f Filter, a Arch) Program {
	tb.Helper()
	p, err := f.Compile(a)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// mustCall returns the call of a syscall by name.
func mustCall(tb testing.TB, a Arch, name string, args ...uint64) Call {
	tb.Helper()
	c, err := NewCall(a, name, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// verdict returns what p does to c.
func verdict(tb testing.TB, p Program, c Call) Action {
	tb.Helper()
	a, err := p.Evaluate(c)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}
