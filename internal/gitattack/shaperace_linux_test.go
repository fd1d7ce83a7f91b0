package gitattack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// halfName is the argv[0] of a program that makes one half of a git directory while another sandbox makes the other.
const halfName = "holdfast-gitattack-half"

func init() { kerneltest.Programs[halfName] = halfMain }

// A half is what one of two sandboxes does in each directory d0, d1, ...: prepare is done beforehand, act when the
// other's turn has come, too.
type half struct {
	Own, Other string // files by which the two wait for each other: Own + number is made before act
	Prepare    []op
	Act        [][]op // one for each directory
}

func halfMain() {
	var h half
	if err := json.NewDecoder(os.Stdin).Decode(&h); err != nil {
		fmt.Println("no half:", err)
		os.Exit(1)
	}
	t := &tool{kept: map[string]int{}}
	t.ws, _ = os.Getwd()
	for _, o := range h.Prepare {
		_ = t.act(o)
	}
	for n, ops := range h.Act {
		_ = os.WriteFile(h.Own+strconv.Itoa(n), nil, 0o644)
		var st unix.Stat_t
		for tries := 0; tries < 1e6 && unix.Lstat(h.Other+strconv.Itoa(n), &st) != nil; tries++ {
		}
		for _, o := range ops {
			if err := t.act(o); err != nil {
				fmt.Printf("%s: %v\n", o, err)
			}
		}
	}
}

// Two sandboxes on one workspace have two supervisors: what completes a git directory and what is forbidden in one come
// at the same moment.
func TestKernelGitAttackTwoSandboxesMakeOneGitDirectory(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.Command("git"))
			r := newRunner(t)
			k := r.lookup(t, "none")
			r.lay(t, k)
			rounds := 2 * raceRounds(r.t)
			a, b := halves(&r.world, rounds)
			var both sync.WaitGroup
			for _, h := range []half{a, b} {
				c := r.command(halfName)
				in, err := c.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				both.Go(func() {
					_ = json.NewEncoder(in).Encode(h)
					in.Close()
					_ = c.Wait()
				})
			}
			both.Wait()
			for n := range rounds {
				d := "d" + strconv.Itoa(n)
				if !r.complete(d) {
					continue
				}
				for _, c := range say(d+":status", d+":update-ref refs/heads/x "+r.head, d+":fetch origin") {
					if f := r.outsideCommand(c); f != nil {
						entries, _ := filepath.Glob(filepath.Join(r.ws, d, "*"))
						t.Fatalf("%s: %s\n%v", f.what, f.text, entries)
					}
				}
			}
		})
	})
}

// complete reports whether a directory has all that a git directory has, and something that git executes.
func (r *runner) complete(dir string) bool {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(r.ws, dir, name))
		return err == nil
	}
	return there("HEAD") && there("objects") && there("refs") && (there("config") || there("hooks/reference-transaction"))
}

// halves deals the parts of a git directory with a command in it to two sandboxes.
func halves(w *world, rounds int) (a, b half) {
	a.Own, a.Other, b.Own, b.Other = "a", "b", "b", "a"
	r := random(uint64(rounds))
	for n := range rounds {
		d := "d" + strconv.Itoa(n)
		forbidden := pick(r, [][]op{
			{write(d+"/config", shapeConfig(w))},
			{rename("c"+strconv.Itoa(n), d+"/config")},
			{{Do: "link", Path: "c" + strconv.Itoa(n), To: d + "/config"}},
			{program(d+"/hooks/reference-transaction", w)},
		})
		parts := [][]op{{mkdir(d + "/objects")}, {mkdir(d + "/refs")}, {write(d+"/HEAD", []byte("ref: refs/heads/main\n"))}}
		shuffle(r, parts)
		a.Prepare = append(a.Prepare, mkdir(d), write("c"+strconv.Itoa(n), shapeConfig(w)), parts[0][0], parts[1][0])
		a.Act = append(a.Act, parts[2])
		b.Act = append(b.Act, forbidden)
	}
	return a, b
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
