package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelSetsOfWallsThatAreOne: what eachWall leaves out for a user is another set's plan to the last step.
func TestKernelSetsOfWallsThatAreOne(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	for _, w := range allSets {
		for _, as := range []kerneltest.User{kerneltest.Root, kerneltest.Ordinary} {
			same := slices.IndexFunc(allSets, func(other walls) bool { return other.name == w.same(as) })
			if same < 0 {
				continue
			}
			dir, err := os.MkdirTemp("", "plan")
			if err == nil {
				err = os.Chmod(dir, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			child := kerneltest.Child{As: as, Env: []string{"PLAN=" + filepath.Join(dir, "plan")}}
			for i, w := range []walls{w, allSets[same]} {
				t.Run(w.name+" "+as.String(), func(t *testing.T) {
					as.Wanted(t)
					child.Without = w.without
					kerneltest.InChild(t, child, func(t *testing.T) {
						text := planText(t, w)
						if i == 0 {
							if err := os.WriteFile(os.Getenv("PLAN"), []byte(text), 0o644); err != nil {
								t.Fatal(err)
							}
							return
						}
						first, err := os.ReadFile(os.Getenv("PLAN"))
						if err != nil || string(first) != text {
							t.Errorf("%v\n%s", err, cmp.Diff(string(first), text))
						}
					})
				})
			}
		}
	}
}

// planText is the plan of a Workspace behind these walls, a line a step, with the same names in each process.
func planText(t *testing.T, w walls) string {
	t.Helper()
	workspace := realTemp(t)
	p := Workspace(workspace)
	p.May = w.may
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%+v\n", s.ready.Plan.Namespaces)
	for _, step := range s.ready.Plan.Steps {
		fmt.Fprintf(&text, "%v %T%+v\n", step.In, step.Do, step.Do)
	}
	all := strings.NewReplacer(workspace, "WORKSPACE", os.Getenv("HOME"), "HOME", os.TempDir(), "TMPDIR").Replace(text.String())
	return regexp.MustCompile(`(nproc |\()[0-9]+`).ReplaceAllString(all, "${1}N") // as many as there are processes, and the length of a path
}
