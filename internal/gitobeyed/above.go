package gitobeyed

import (
	"os"
	"path/filepath"
	"slices"
)

// Above finds the repository whose work tree dir lies in, dir being absolute, free of links, and no work tree's top: git looks in every
// directory above for one (git(1), discovery). Top is the work tree; "": there is none. The repository is a git directory called
// .git, or what Linked finds for a .git file. Work tree and repository have to belong to this process's user or to dir's owner, and to
// lie on dir's file system, as git demands. Where something is wrong, problem says what.
func Above(dir string) (top string, l Link, problem string) {
	for at := dir; !there(at + "/.git"); at = filepath.Dir(at) {
		if at == "/" || isBare(at) || device(at) != device(filepath.Dir(at)) { // in a bare repository, git finds that
			return "", Link{}, ""
		}
		top = filepath.Dir(at)
	}
	if top == "" {
		return "", Link{}, "" // dir has one
	}
	if !slices.Contains([]int{os.Geteuid(), owner(dir)}, owner(top)) {
		return top, Link{}, top + " belongs to another user"
	}
	git := top + "/.git"
	switch info, err := os.Lstat(git); {
	case err != nil:
		return top, Link{}, git + " cannot be looked up"
	case info.Mode().IsRegular():
		l, problem = Linked(top)
	case !info.IsDir():
		problem = git + " is neither a directory nor a file"
	case device(git) != device(dir):
		problem = git + " lies on another file system"
	default:
		l, problem = Link{Repository: git, Written: git}.checked(top, git)
	}
	if problem == "" && !slices.Contains([]int{os.Geteuid(), owner(dir)}, owner(l.Repository)) {
		problem = l.Repository + " belongs to another user"
	}
	return top, l, problem
}

// isBare reports whether dir itself has the shape of a git directory.
func isBare(dir string) bool {
	return there(dir+"/HEAD") && there(dir+"/objects") && there(dir+"/refs")
}
