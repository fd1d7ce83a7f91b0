package sandbox

import (
	"os"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

// checkDescriptors refuses to hand a directory to the tool where Landlock does
// not hold files: it lies in the harness's own tree of mounts, and ".." leads
// from it to everything (openat(2), as in CVE-2024-21626).
func (r *run) checkDescriptors() error {
	if r.sandbox.plan.Uses(plan.Landlock) || !r.sandbox.plan.Namespaces.Mount {
		return nil
	}
	files := map[string]any{"Stdin": r.cmd.Stdin, "Stdout": r.cmd.Stdout, "Stderr": r.cmd.Stderr}
	for i, f := range r.cmd.ExtraFiles {
		files[indexed("ExtraFiles", i)] = f
	}
	for field, v := range files {
		f, ok := v.(*os.File)
		if !ok || f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return &PolicyError{Field: field, Value: f.Name(), Problem: "is a directory, from which a tool can leave a sandbox without Landlock", Remedy: "grant the directory in the Policy instead", Err: errInvalid}
		}
	}
	return nil
}
