package resolve

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// NotePath adds a note for each directory of the harness's PATH that the tool can write: what the harness starts by a name is the tool's then. A virtual
// environment of Python that is active, or node_modules/.bin, is such a directory, and tools have to write there.
func NotePath(p *policy.Policy, tree Tree) {
	if slices.Contains(p.Open, policy.BoundFiles) {
		return
	}
	var noted []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		real, info, err := Canonical(dir)
		if err != nil || !filepath.IsAbs(real) || !info.IsDir() || slices.Contains(noted, real) || !tree.writes(real) {
			continue
		}
		noted = append(noted, real)
		p.Notes = append(p.Notes, policy.Note{At: "Files.Write", Rule: real, Class: "weaker",
			Why: "it is in the harness's PATH, so what the harness and its user start by a name can be a program of the tool's: take it out of PATH, or name it in Files.Read"})
	}
}

// writes reports whether the rule that decides on a directory lets the tool write there.
func (l Tree) writes(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if e, ok := l.Find(dir); ok {
			return e.Kind == pathrule.Write
		}
		if dir == "/" {
			return false
		}
	}
}
