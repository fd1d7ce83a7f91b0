package runner

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"golang.org/x/sys/unix"
)

// discarded returns the regular files that the tools of a run or a session have left directly in a private HOME or in a private directory around what they
// can write: most likely they took the place for one that lasts. Names that begin with a dot are settings and caches. It is called when all processes are dead.
func (s *Sandbox) discarded(scratch *os.File) (found supervisor.Names) {
	dirs := []string{cmp.Or(s.Policy.Env.Set["HOME"], os.Getenv("HOME"))}
	for _, w := range s.Policy.Files.Write[:min(len(s.Policy.Files.Write), mostLookedAt)] {
		dirs = append(dirs, path.Dir(w))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		var in plan.Private // the deepest around dir
		for _, step := range s.Plan.Steps {
			if p, ok := step.Do.(plan.Private); ok && pathrule.Within(dir, p.At) && len(p.At) >= len(in.At) {
				in = p
			}
		}
		if in.At == "" {
			continue
		}
		// The tool may have put a link there.
		how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV}
		fd, err := unix.Openat2(int(scratch.Fd()), path.Join(in.Slot, strings.TrimPrefix(dir, in.At)), &how)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), dir)
		entries, _ := f.ReadDir(mostEntries)
		f.Close()
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			if e.Type().IsRegular() && e.Name()[0] != '.' && !slices.ContainsFunc(s.Tree.Entries, func(e resolve.Entry) bool { return e.Path == at }) {
				found.List = append(found.List, at)
			}
		}
		found.More = found.More || len(entries) == mostEntries
	}
	slices.Sort(found.List)
	return found
}

// mostLookedAt and mostEntries bound what a run's end takes.
const mostLookedAt, mostEntries = 4, 64
