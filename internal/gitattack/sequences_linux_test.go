package gitattack

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelGitAttackSequences runs the sequences of fixed seeds, and of some that the time gives. HOLDFAST_GITATTACK is
// how many there shall be, HOLDFAST_GITATTACK_SEED the only one or, of many, the first.
func TestKernelGitAttackSequences(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 12 * time.Hour}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.Command("git"))
			r := newRunner(t)
			begin := time.Now()
			for i, seed := range seeds(t) {
				r.strace = r.canTrace && i%40 == 39
				s := draw(seed, r.place)
				if f := r.carryOut(s); f != nil {
					r.report(s, f)
				}
				if i%500 == 499 {
					r.note("%d sequences after %v: %+v", i+1, time.Since(begin).Round(time.Second), r.tally)
				}
			}
			took := time.Since(begin)
			t.Logf("%+v in %v, %.1f a second", r.tally, took.Round(time.Second), float64(r.tally.sequences)/took.Seconds())
			if r.tally.done*10 < r.tally.ops || r.tally.succeeded*4 < r.tally.commands {
				t.Errorf("next to nothing succeeds, inside or outside: %+v", r.tally)
			}
		})
	})
}

// seeds returns what this run shall try: some that are fixed, and some of the present time.
func seeds(t *testing.T) []uint64 {
	count, err := strconv.Atoi(or(os.Getenv("HOLDFAST_GITATTACK"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	var list []uint64
	if text := os.Getenv("HOLDFAST_GITATTACK_SEED"); text != "" {
		first, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i := range max(count, 1) {
			list = append(list, first+uint64(i))
		}
		return list
	}
	if count == 0 {
		for i := range kerneltest.Amount(t, 2, 6, 12) {
			list = append(list, uint64(i))
		}
		count = kerneltest.Amount(t, 0, 2, 12)
	}
	first := uint64(time.Now().UnixNano() / 1000)
	t.Logf("the seeds of this run begin at %d", first)
	for i := range count {
		list = append(list, first+uint64(i))
	}
	return list
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	_, err := exec.LookPath("strace")
	return &runner{stock: newStock(t), t: t, policy: workspace(nil), canTrace: err == nil, known: map[string]int{}}
}

// place returns the world with a fixture, and where the user works in it.
func (r *runner) place(name string) (*world, []string) { return r.at(name), r.lookup(r.t, name).dirs }

// report makes a finding small and writes it down; of findings of one class and kind only the first few.
func (r *runner) report(s *sequence, f *finding) {
	key := s.Class + "\x00" + f.what
	r.known[key]++
	if r.known[key] > 3 && s.Class != "random" || r.known[key] > 20 {
		r.tell("seed %d: %s again, of class %s", s.Seed, f.what, s.Class)
		return
	}
	r.strace = false
	idle := s.clone()
	for i := range idle.Rounds {
		idle.Rounds[i].Ops = nil
	}
	if own := r.carryOut(idle); own != nil {
		return // the user's commands do that without any tool: git worktree repair writes to a repository's own directory
	}
	small := minimise(s, func(c *sequence) bool {
		again := r.carryOut(c)
		return again != nil && again.what == f.what
	})
	if again := r.carryOut(small); again != nil {
		f = again
	}
	r.tell("%s: %s\n%s", f.what, f.text, small.describe(r.at(s.Fixture)))
}

// tell fails the test. It and note write to the file that HOLDFAST_GITATTACK_LOG names: a long run is read while it runs.
func (r *runner) tell(format string, args ...any) {
	r.t.Errorf(format, args...)
	r.note(format, args...)
}

func (r *runner) note(format string, args ...any) {
	if name := os.Getenv("HOLDFAST_GITATTACK_LOG"); name != "" {
		if f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
			fmt.Fprintf(f, format+"\n", args...)
			f.Close()
		}
	}
}
