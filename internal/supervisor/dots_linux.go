package supervisor

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// Lists of names lag behind the programs that obey them. So a new name that begins with a dot, in a directory that is held, and that is neither
// protected nor known to be harmless, is entered in a table, and the report names those that are still there at the end.

// newDot returns which of the call's paths is such a name that the call is to make, or -1.
//
//go:norace
func (s *State) newDot() int {
	k := 0
	switch s.op {
	case opOpen:
		if s.flags&syscall.O_CREAT == 0 || s.flags&oTmpfileBit != 0 {
			return -1
		}
	case opRename, opLink:
		k = 1
	case opMakeDir, opMakeNode, opSymlink, opBind:
	default:
		return -1
	}
	sp := &s.resolved[k&1]
	if sp.obj >= 0 || sp.dir < 0 || sp.name[0] != '.' || !sp.inside || sp.hit != 0 || sp.free || sp.git.inside || s.denials == 0 || s.m.r16(offNames) == 0 {
		return -1
	}
	if harmlessDot(sp.name[:]) || s.exists(k) || s.madeByTool(sp.dir) {
		return -1
	}
	return k
}

// noteDot enters the name.
//
//go:norace
func (s *State) noteDot(k int) {
	if s.pathOf(&s.resolved[k&1]) == 0 {
		s.noteName(&s.table().dots, s.m.n)
	}
}

// harmlessDot reports whether a name is one of protected.HarmlessDots.
//
//go:norace
func harmlessDot(name []byte) bool {
	for i := range protected.HarmlessDots {
		h, n := protected.HarmlessDots[i], name
		for len(h) > 0 && len(n) > 0 && n[0] == h[0] {
			h, n = h[1:], n[1:]
		}
		if len(h) == 0 && len(n) > 0 && (n[0] == 0 || n[0] == '/') || len(h) == 1 && h[0] == '*' {
			return true
		}
	}
	return false
}
