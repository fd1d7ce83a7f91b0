package supervisor

import "syscall"

// What the names in a directory make of it.
const (
	keyHead = 1 << iota
	keyObjects
	keyRefs
	keyCommon
)

// resolvedPath is where a path of the tool leads: a name in a directory, or an object reached without one.
type resolvedPath struct {
	start int // O_PATH descriptor of the tool's directory that the path begins at; -1 for the root
	dir   int // O_PATH descriptor of the directory that holds name; -1 when obj is set
	owned bool
	obj   int // O_PATH descriptor of what ".", "..", "/", a magic link or an empty path stands for; or -1
	name  [512]byte
	st    syscall.Stat_t // of the name itself, when stat is 0
	stat  int            // what lstat of the name returned; 1 when it was not asked
	hit   uint32

	inside  bool // strictly in a root
	granted bool // the tool's to change, where Rules.Fence asks
	free    bool // a name that is protected elsewhere, in a directory that the tool has made,
	whole   uint // which ends with so many components of the path; ^0: it is on the way to one
	git     within
}

// within says how a resolved path's name lies in a git directory.
type within struct {
	rules  bool   // the name is in a root, and git directories are held
	inside bool   // it is in a git directory, by class
	named  bool   // which is called .git, or lies in one that is
	class  uint8  // see gitLines
	at     uint16 // where the part of the path in it begins
	up     uint   // directories from the name's own to the git directory
	top    bool   // it lies in modules itself, which git makes no git directory: what is there is held as submodules are
	later  bool   // the directories above are not looked at yet: see canWait
}

// loose reports whether the name lies where a git directory has what is not held, so that another git directory can come to be there.
//
//go:norace
func (g *within) loose() bool { return g.up != 0 && (g.class == gitTree || g.class == gitModules) }

//go:norace
func (sp *resolvedPath) reset() {
	sp.start, sp.dir, sp.obj, sp.owned, sp.stat, sp.hit = -1, -1, -1, false, 1, 0
	sp.inside, sp.granted, sp.free = false, false, false
	sp.git = within{}
}

// leave closes what the resolved path holds but for where its path begins.
//
//go:norace
func (sp *resolvedPath) leave() {
	if sp.owned {
		closeFD(sp.dir)
	}
	closeFD(sp.obj)
	sp.dir, sp.obj, sp.owned, sp.stat = -1, -1, false, 1
}

// drop closes all that the resolved path holds.
//
//go:norace
func (sp *resolvedPath) drop() {
	sp.leave()
	closeFD(sp.start)
	sp.start = -1
}

// isName compares the resolved path's name with a word of lower case, with case folded, and without what some file systems leave out: see spell.go.
//
//go:norace
func (sp *resolvedPath) isName(word string) bool {
	j := uint(0)
	for i := uint(0); i < 256 && sp.name[i] != 0 && sp.name[i] != '/' && sp.name[i] != ':'; i++ {
		if j == uint(len(word)) && (sp.name[i] == '.' || sp.name[i] == ' ') {
			continue
		}
		for w := folded(sp.name[i], sp.name[(i+1)&511], sp.name[(i+2)&511]); w != 0; w >>= 8 {
			if j >= uint(len(word)) || byte(w) != word[j] {
				return false
			}
			j++
		}
	}
	return j == uint(len(word))
}

// keyOf returns which of these names the resolved path's is, to a file system that folds case, too.
//
//go:norace
func (sp *resolvedPath) keyOf() uint {
	switch {
	case sp.isName("head"):
		return keyHead
	case sp.isName("objects"):
		return keyObjects
	case sp.isName("refs"):
		return keyRefs
	case sp.isName("commondir"):
		return keyCommon
	}
	return 0
}
