package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelTheMachinesFilesInProcAreCovered, whatever the root directory is made of: each that this kernel has is under an empty file
// that cannot be written or executed, and files of processes are not.
func TestKernelTheMachinesFilesInProcAreCovered(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			hidden := plan.HiddenProc
			if os.Getuid() != 0 {
				hidden = hidden[:len(hidden)-plan.RootsProc]
			}
			open := workspaceHere(t)
			open.Open = []Bound{policy.BoundFiles}
			for name, p := range map[string]Policy{"a root of the sandbox's own": workspaceHere(t), "the host's root, to read": {Files: Files{Read: []string{"/"}}}, "files not bounded": open} {
				out, err := commandIn(t, p, "ls /proc && cat /proc/self/mountinfo && cat /proc/meminfo >/dev/null").CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
				lines, found := strings.Split(string(out), "\n"), 0
				for _, file := range hidden {
					if !slices.Contains(lines, file) {
						continue
					}
					found++
					if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, " /none /proc/"+file+" ro,nosuid,nodev,noexec,") }) {
						t.Errorf("%s: /proc/%s is not covered", name, file)
					}
				}
				if found == 0 { // every procfs has interrupts and softirqs
					t.Errorf("%s: none of %q is in /proc:\n%s", name, hidden, out)
				}
			}
		})
	})
}
