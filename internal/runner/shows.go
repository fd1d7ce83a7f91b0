package runner

import (
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// shows reports whether the policy shows p, a path of the host, to the tool, at
// the same path. A path that does not exist is shown where its parent is.
func (s *Sandbox) shows(p string) bool {
	if slices.Contains(s.Policy.Open, policy.BoundFiles) {
		return true
	}
	p, err := filepath.Abs(p)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		real = p
		if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			real = filepath.Join(dir, filepath.Base(p))
		}
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if e, ok := s.Tree.Find(dir); ok {
			switch e.Kind {
			case pathrule.Read, pathrule.Write, pathrule.CopyOnWrite:
				return e.Dir || dir == real
			case pathrule.Private, pathrule.Make:
				return dir == real
			}
			return false
		}
		if dir == "/" {
			return dir == real // the root itself is always there
		}
	}
}
