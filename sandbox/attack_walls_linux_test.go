package sandbox

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// walls are a set of mechanisms to attack.
type walls struct {
	name    string
	without []kerneltest.Feature
	may     []Bound
	drop    plan.Mechanism // its steps are left out of the plan
	noCalls bool           // without the system call profile
	abi     int            // Landlock as this ABI has it; 0: the kernel's
}

const (
	allWalls     = "every mechanism"
	noLandlock   = "without Landlock"
	noNamespaces = "without namespaces"
	noUserNS     = "without user namespaces"
	noProfile    = "without a system call profile"
	noOwnProc    = "without a procfs of its own"
)

var allSets = []walls{
	{name: allWalls},
	{name: noLandlock, without: []kerneltest.Feature{kerneltest.Landlock}},
	{name: noUserNS, without: []kerneltest.Feature{kerneltest.UserNamespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}},
	{name: noNamespaces, without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}},
	{name: noProfile, noCalls: true},
	sharedPIDs,
}

// unsupervised are those sets of which a policy that protects no name has no supervisor: without Landlock it keeps the tool to the sandbox's mounts.
var unsupervised = slices.DeleteFunc(slices.Clone(allSets), func(w walls) bool { return w.name == noLandlock })

// inContainer refuses what container engines refuse without CAP_SYS_PTRACE and CAP_SYS_ADMIN: as root namespaces can be made without a user
// namespace, as an ordinary user none.
var inContainer = walls{name: "without user namespaces and calls into other processes", without: []kerneltest.Feature{kerneltest.UserNamespaces, kerneltest.ProcessCalls},
	may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}}

// sharedPIDs is a container whose runtime covers parts of /proc: an ordinary user has all namespaces but that of processes; root mounts a new /proc
// without a user namespace.
var sharedPIDs = walls{name: noOwnProc, without: []kerneltest.Feature{kerneltest.WholeProc}, may: []Bound{policy.BoundProcesses}}

// chosen skips all but the first of several sets of walls, and the one without namespaces, unless all tests are asked for.
func (w walls) chosen(t *testing.T, sets []walls) {
	t.Helper()
	switch w.name {
	case sets[0].name:
	case noNamespaces:
		kerneltest.Long(t)
	default:
		kerneltest.Heavy(t)
	}
}

// same returns the name of the set that is this one for a user: an ordinary one makes no namespace without a user namespace, and
// where /proc has covers root makes them without it. TestKernelSetsOfWallsThatAreOne holds it.
func (w walls) same(as kerneltest.User) string {
	switch {
	case w.name == noUserNS && as == kerneltest.Ordinary:
		return noNamespaces
	case w.name == noOwnProc && as == kerneltest.Root:
		return noUserNS
	}
	return ""
}

// eachWall runs a body in a child for each user and each set of walls that is chosen.
func eachWall(t *testing.T, sets []walls, body func(t *testing.T, w walls)) {
	for _, w := range sets {
		t.Run(w.name, func(t *testing.T) {
			w.chosen(t, sets)
			for _, as := range []kerneltest.User{kerneltest.Root, kerneltest.Ordinary} {
				if same := w.same(as); same != "" && slices.ContainsFunc(sets, func(other walls) bool { return other.name == same }) {
					continue
				}
				t.Run(as.String(), func(t *testing.T) {
					as.Wanted(t)
					kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without}, func(t *testing.T) { body(t, w) })
				})
			}
		})
	}
}
