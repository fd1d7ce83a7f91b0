package seccomp

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// loadBenchmark is the environment variable that makes this test binary load programs and
// print how long that took. A process of its own does it, each load on a thread of its own,
// which ends with its filter.
const loadBenchmark = "HOLDFAST_SECCOMP_LOAD"

const loads = 301

// loadOften loads the tree of Default and a list of equal meaning by turns, and prints the medians.
func loadOften(string) int {
	arch, err := Native()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	tree, err := Default().Compile(arch)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	programs := [...]Program{tree, list(Default(), arch)}
	var times [len(programs)][]time.Duration
	for range loads {
		for i, p := range programs {
			result := make(chan time.Duration)
			go func() {
				start := time.Now()
				if _, err := p.Load(LoadOptions{ThreadOnly: true}); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				result <- time.Since(start)
			}()
			times[i] = append(times[i], <-result)
		}
	}
	for i, p := range programs {
		slices.Sort(times[i])
		fmt.Printf("%d %d ", p.Len(), times[i][loads/2].Nanoseconds())
	}
	return 0
}

// list compiles f without a search: one comparison for each syscall that is allowed whatever its arguments, then the tree for the rest.
func list(f Filter, a Arch) Program {
	p, err := f.Compile(a)
	if err != nil {
		panic(err)
	}
	b := assembled(op(opLoad, offsetArch), instruction{Code: jumpEqual, JT: 1, K: uint32(a)}, op(opReturn, uint32(KillProcess)), op(opLoad, offsetNr))
	for _, e := range table {
		nr, ok := e.number(a)
		if c := (Call{Arch: a, Nr: nr, Args: [6]uint64{^uint64(0), ^uint64(0), ^uint64(0)}}); ok {
			if got, _ := p.Evaluate(c); got == Allow {
				b = append(b, assembled(instruction{Code: jumpEqual, JF: 1, K: nr}, op(opReturn, uint32(Allow)))...)
			}
		}
	}
	p, err = ParseProgram(append(b, p.Bytes()...))
	if err != nil {
		panic(err)
	}
	return p
}

// BenchmarkLoad reports the median time to load Default as the tree that it compiles to, and as a list.
func BenchmarkLoad(b *testing.B) {
	var treeLen, treeNs, listLen, listNs float64
	for b.Loop() {
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		cmd.Env = append(os.Environ(), loadBenchmark+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		if n, err := fmt.Sscan(strings.TrimSpace(string(out)), &treeLen, &treeNs, &listLen, &listNs); n != 4 {
			b.Fatalf("%v: %s", err, out)
		}
	}
	b.ReportMetric(treeLen, "tree-instructions")
	b.ReportMetric(treeNs/1000, "tree-µs")
	b.ReportMetric(listLen, "list-instructions")
	b.ReportMetric(listNs/1000, "list-µs")
	b.ReportMetric(0, "ns/op")
}
