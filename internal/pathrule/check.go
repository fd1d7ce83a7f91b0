package pathrule

import (
	"path"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// Bounds on paths and their number.
const (
	MaxPath  = 4095    // PATH_MAX without its NUL (linux/limits.h)
	MaxName  = 255     // NAME_MAX
	MaxRules = 1 << 16 // path rules; far above what a person or a tool writes
)

// Check judges the text of a path of one kind. The problem is "" where there is none.
func Check(p string, kind Kind) (problem, remedy string) {
	switch {
	case p == "":
		return "is empty", "remove it, or write an absolute path"
	case strings.ContainsRune(p, 0):
		return "has a NUL byte", "remove it"
	case p[0] != '/':
		return "is not absolute", "make it so with filepath.Abs"
	case path.Clean(p) != p:
		return "is not clean", "write " + strconv.Quote(errtext.Shorten(path.Clean(p)))
	case len(p) > MaxPath:
		return "is longer than 4095 bytes", "name a directory further up"
	}
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > MaxName {
			return "has a name longer than 255 bytes", "no file can have it: remove the rule"
		}
	}
	return Reserved(p, kind)
}

// Reserved says why a rule of this kind cannot stand at p, clean and absolute,
// because the place is the sandbox's own.
func Reserved(p string, kind Kind) (problem, remedy string) {
	switch {
	case p == "/" && kind != Read && kind != Write:
		return "is the whole file system", "name a directory below it; for sandbox.Command, whose workspace is the working directory, change to the directory of one project"
	case Within(p, "/proc"):
		return "the sandbox mounts its own /proc, with its own processes", "remove the rule"
	case p == "/dev", Within(p, "/dev/pts"), Within(p, "/dev/shm"), Within(p, "/dev/mqueue"):
		return "the sandbox mounts its own /dev", `name the device files, such as "/dev/kvm", in Write`
	case Within(p, "/dev") && kind != Read && kind != Write:
		return "the sandbox mounts its own /dev", "a device file is in it when Read or Write names it"
	case Within(p, "/sys") && kind != Read && kind != Hide:
		return "the host's /sys can only be read", "name it in Read"
	}
	return "", ""
}
