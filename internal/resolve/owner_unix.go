//go:build unix

package resolve

import (
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
)

// idOf says which file lies at a path; the zero value: none.
func idOf(p string) plan.FileID {
	var st syscall.Stat_t
	if syscall.Lstat(p, &st) != nil {
		return plan.FileID{}
	}
	return plan.FileID{Device: uint64(st.Dev), Inode: st.Ino}
}

// ownBelow returns the nearest directory around p below which every directory on the way to p, and p, is the user's, who may
// do anything in it. It is p where p is not.
func ownBelow(p string) string {
	for p != "/" {
		info, err := os.Lstat(p)
		if err != nil || info.Mode().Perm()&0o700 != 0o700 {
			break
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			break
		}
		p = path.Dir(p)
	}
	return p
}

// exposed says why dir, which is canonical, is not this user's alone: it belongs to another, or others can write to it, or
// can put another directory in its place.
func exposed(dir string) (problem, remedy string) {
	for at := dir; ; at = path.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "cannot be looked up", "name a directory that the harness can reach"
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch mode := info.Mode(); {
		case !ok, at == dir && int(st.Uid) != os.Geteuid():
			return "belongs to another user", "name a directory of the harness's user"
		case at == dir && mode.Perm()&0o022 != 0:
			return "can be written by others", "chmod go-w " + at
		case at != dir && mode.Perm()&0o002 != 0 && mode&os.ModeSticky == 0:
			return "lies in " + at + ", in which others can rename what is there", "name a directory elsewhere, or chmod o-w " + at
		}
		if at == "/" {
			return "", ""
		}
	}
}

// Foreign returns the entries to be written in which a root without capabilities, as a tool of root's is, can write nothing: they
// belong to another user, and neither a group of the harness nor all others may write to them.
func Foreign(l Tree) []Owned {
	if os.Geteuid() != 0 {
		return nil
	}
	var list []Owned
	for _, e := range l.Entries {
		if e.Kind != pathrule.Write || pathrule.Within(e.Path, "/dev") {
			continue
		}
		info, err := os.Lstat(e.Path)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && foreign(st.Uid, st.Gid, info.Mode().Perm()) {
			list = append(list, Owned{e.Path, st.Uid, st.Gid})
		}
	}
	return list
}

func foreign(uid, gid uint32, mode os.FileMode) bool {
	groups, _ := os.Getgroups()
	return uid != 0 && mode&0o002 == 0 && (mode&0o020 == 0 || int(gid) != os.Getegid() && !slices.Contains(groups, int(gid)))
}
