package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

var _, _ = offer(programs, "read", func(args []string) {
	for _, p := range args {
		err := readsSecret(p)
		fmt.Println(p, err)
		if err == nil {
			fmt.Println("ESCAPE: read", p)
		}
	}
}), offer(programs, "swap the parent", func(args []string) {
	// args: a directory, and a name in it that a rule covers.
	fmt.Println(os.Rename(args[0], args[0]+".moved"))
	fmt.Println(os.MkdirAll(args[0], 0o755), os.WriteFile(filepath.Join(args[0], args[1]), []byte("decoy\n"), 0o644))
})

// say runs a hostile tool and returns what it printed, and what went wrong.
func say(t *testing.T, s *Sandbox, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := hostile(t, s, args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	t.Logf("%v: %v\n%s", args, err, out.Bytes())
	return out.String(), err
}

// rules puts a path under each kind of rule.
var rules = map[string]func(p *Policy, path string){
	"Read":        func(p *Policy, path string) { p.Files.Read = append(p.Files.Read, path) },
	"Write":       func(p *Policy, path string) { p.Files.Write = append(p.Files.Write, path) },
	"CopyOnWrite": func(p *Policy, path string) { p.Files.CopyOnWrite = append(p.Files.CopyOnWrite, path) },
	"Private":     func(p *Policy, path string) { p.Files.Private = append(p.Files.Private, path) },
	"Hide":        func(p *Policy, path string) { p.Files.Hide = append(p.Files.Hide, path) },
}

// A link in a writable directory was perhaps planted by a tool: a rule that
// leads through it must not become a rule for its target.
func TestKernelAttackLinkPlantedBeforeTheSandboxIsMade(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for kind, rule := range rules {
		t.Run(kind, func(t *testing.T) {
			eachWall(t, allSets[:1], func(t *testing.T, w walls) {
				base := makeGrounds(t, 1)
				f := groundOf(base, 0, 0)
				link := filepath.Join(f.write, "cache")
				if err := os.Symlink(f.secret, link); err != nil {
					t.Fatal(err)
				}
				p := attackPolicy(t, base, w)
				rule(&p, link)
				s, err := New(p)
				if err != nil {
					t.Log(err)
					return
				}
				if out, _ := say(t, s, "read", link+"/file", f.hidden()); strings.Contains(out, "ESCAPE") {
					t.Error("ESCAPE: the link's target was granted")
				}
			})
		})
	}
}

func TestKernelAttackLinkPlantedAfterTheSandboxIsMade(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for kind, rule := range rules {
		t.Run(kind, func(t *testing.T) {
			eachWall(t, []walls{allSets[0], allSets[1], allSets[3]}, func(t *testing.T, w walls) {
				base := makeGrounds(t, 1)
				f := groundOf(base, 0, 0)
				place := filepath.Join(f.write, "cache")
				if err := os.Mkdir(place, 0o755); err != nil {
					t.Fatal(err)
				}
				p := attackPolicy(t, base, w)
				rule(&p, place)
				s := attackSandbox(t, p, w)
				if err := os.Remove(place); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(f.secret, place); err != nil {
					t.Fatal(err)
				}
				if out, _ := say(t, s, "read", place+"/file", f.hidden()); strings.Contains(out, "ESCAPE") {
					t.Error("ESCAPE: the link's target was granted")
				}
				untouched(t, base, 1)
			})
		})
	}
}

// A tool that cannot touch a place moves the directory around it, and puts
// another there: the next run's rule must not hold the decoy.
func TestKernelAttackParentMovedBetweenRuns(t *testing.T) {
	kerneltest.Long(t)
	for kind, rule := range map[string]func(p *Policy, path string){"Read": rules["Read"], "Hide": rules["Hide"]} {
		t.Run(kind, func(t *testing.T) {
			eachWall(t, allSets[:2], func(t *testing.T, w walls) {
				base := makeGrounds(t, 1)
				f := groundOf(base, 0, 0)
				dir := filepath.Join(f.write, "around")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "held"), []byte("original\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				p := attackPolicy(t, base, w)
				rule(&p, filepath.Join(dir, "held"))
				s := attackSandbox(t, p, w)
				say(t, s, "swap the parent", dir, "held")
				say(t, s, "spoil", dir+".moved/held")
				if out, _ := say(t, s, "read", dir+".moved/held"); kind == "Hide" && strings.Contains(out, "ESCAPE") {
					t.Error("ESCAPE: what was hidden is read in the second run")
				}
				for _, at := range []string{dir + "/held", dir + ".moved/held"} {
					if text, err := os.ReadFile(at); err == nil && strings.Contains(string(text), "spoilt") {
						t.Error("ESCAPE: what may only be read was written in the second run")
					}
				}
			})
		})
	}
}

var _ = offer(programs, "spoil", func(args []string) { fmt.Println(os.WriteFile(args[0], []byte("spoilt\n"), 0o644)) })

// A tree that may only be read, inside one that can be written, is read-only or
// stands in the report.
func TestKernelAttackReadOnlyInsideWritable(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[1], allSets[3]}, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		f := groundOf(base, 0, 0)
		held := filepath.Join(f.write, "held")
		if err := os.Mkdir(held, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(held+"/file", []byte("original\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, base, w)
		p.Files.Read = append(p.Files.Read, held)
		s := attackSandbox(t, p, w)
		say(t, s, "spoil", held+"/file")
		told := strings.Contains(fmt.Sprint(s.ready.Plan.Holdings), held+" can be written")
		if text, err := os.ReadFile(held + "/file"); !told && (err != nil || string(text) != "original\n") {
			t.Errorf("ESCAPE: it was written: %q, %v", text, err)
		}
	})
}
