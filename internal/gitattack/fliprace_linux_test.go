package gitattack

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// flipName is the argv[0] of a program that makes something, and unmakes it as long as the other sandbox has not made its part.
const flipName = "holdfast-gitattack-flip"

func init() { kerneltest.Programs[flipName] = flipMain }

// A flip is one program's part. It ends when Won are all there.
type flip struct {
	Make, Unmake []op
	Won          []string
	Times        int
}

func flipMain() {
	var f flip
	if err := json.NewDecoder(os.Stdin).Decode(&f); err != nil {
		fmt.Println("no flip:", err)
		os.Exit(1)
	}
	t := &tool{kept: map[string]int{}}
	t.ws, _ = os.Getwd()
	for range f.Times {
		for _, o := range f.Make {
			_ = t.act(o)
		}
		if allThere(f.Won) {
			return
		}
		for _, o := range f.Unmake {
			_ = t.act(o)
		}
	}
	for _, o := range f.Make {
		_ = t.act(o)
	}
}

func allThere(names []string) bool {
	var st unix.Stat_t
	for _, n := range names {
		if unix.Lstat(n, &st) != nil {
			return false
		}
	}
	return true
}

// Two sandboxes: one makes and unmakes a directory's shape, the other what a git directory must not hold.
func TestKernelGitAttackShapeComesAndGoes(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.Command("git"))
			r := newRunner(t)
			for _, c := range r.flips(100 * raceRounds(r.t)) {
				t.Run(c.name, func(t *testing.T) {
					r.t = t
					k := r.lookup(t, c.fixture)
					r.lay(t, k)
					r.inside(c.before)
					var both sync.WaitGroup
					for _, f := range c.flips {
						cmd := r.command(flipName)
						in, err := cmd.StdinPipe()
						if err != nil {
							t.Fatal(err)
						}
						if err := cmd.Start(); err != nil {
							t.Fatal(err)
						}
						both.Go(func() {
							_ = json.NewEncoder(in).Encode(f)
							in.Close()
							_ = cmd.Wait()
						})
					}
					both.Wait()
					for _, u := range c.user {
						if f := r.outsideCommand(u); f != nil {
							t.Fatalf("%s: %s", f.what, f.text)
						}
					}
				})
			}
		})
	})
}

type flipCase struct {
	name, fixture string
	before        []op
	flips         [2]flip
	user          []command
}

func (r *runner) flips(times int) []flipCase {
	w := r.at("none")
	head := write("HEAD", []byte("ref: refs/heads/main\n"))
	config := write("config", shapeConfig(w))
	full := []string{"HEAD", "objects", "refs", "config"}
	const in = "b.git/refs/d/"
	inside := []string{in + "HEAD", in + "objects", in + "refs", in + "config"}
	bare := r.at("bare layout")
	hook := program(".bare/hooks/post-checkout", bare)
	return []flipCase{
		{"refs and a configuration", "none", []op{mkdir("objects"), head},
			[2]flip{{[]op{mkdir("refs")}, []op{{Do: "rmdir", Path: "refs"}}, full, times}, {[]op{config}, []op{unlink("config")}, full, times}}, say(":status")},
		{"HEAD and a configuration", "none", []op{mkdir("objects"), mkdir("refs")},
			[2]flip{{[]op{head}, []op{unlink("HEAD")}, full, times}, {[]op{config}, []op{unlink("config")}, full, times}}, say(":status")},
		{"HEAD and a renamed configuration", "none", []op{mkdir("objects"), mkdir("refs"), write("c", shapeConfig(w)), write("h", head.Text)},
			[2]flip{{[]op{rename("h", "HEAD")}, []op{rename("HEAD", "h")}, full, times}, {[]op{rename("c", "config")}, []op{rename("config", "c")}, full, times}}, say(":status")},
		{"refs and a configuration, among the refs of another", "none", []op{mkdir("b.git/objects"), mkdir("b.git/refs"), write("b.git/HEAD", head.Text), mkdir(in + "objects"), write(in+"HEAD", head.Text)},
			[2]flip{{[]op{mkdir(in + "refs")}, []op{{Do: "rmdir", Path: in + "refs"}}, inside, times}, {[]op{write(in+"config", config.Text)}, []op{unlink(in + "config")}, inside, times}}, say(in + ":status")},
		{"HEAD goes and comes while a hook is made", "bare layout", nil,
			[2]flip{{[]op{rename(".bare/HEAD", "h"), rename("h", ".bare/HEAD")}, nil, []string{".bare/HEAD", ".bare/hooks/post-checkout"}, times},
				{[]op{hook}, nil, []string{".bare/HEAD", ".bare/hooks/post-checkout"}, times}}, say("trunk:checkout -q -b new")},
	}
}
