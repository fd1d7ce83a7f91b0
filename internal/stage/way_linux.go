package stage

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A Way is how a stage is executed: what an exec.Cmd's Path has to be, and the
// files that the stage then needs. There are two, the image and the harness's
// own file; see image_linux.go.
type Way struct {
	Path string
	// MaxFiles is how many descriptors the tool may have, with the standard ones.
	MaxFiles int
	files    []*os.File
	inodes   [][2]uint64 // device and number of each file
	refused  atomic.Bool
}

// newWay returns a Way that needs files.
func newWay(path string, most int, files ...*os.File) (*Way, error) {
	w := &Way{Path: path, MaxFiles: most, files: files}
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, os.NewSyscallError("fstat", err)
		}
		w.inodes = append(w.inodes, [2]uint64{uint64(st.Dev), st.Ino})
	}
	return w, nil
}

// Check fails when somebody has closed what is needed, as programs do that close
// every descriptor: another file could have the number by now, and Path name that.
func (w *Way) Check() error {
	for i, f := range w.files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil || w.inodes[i] != [2]uint64{uint64(st.Dev), st.Ino} {
			return fmt.Errorf("descriptor %d, which a stage is executed from, was closed by this program: %w", f.Fd(), unix.EBADF)
		}
	}
	return nil
}

// again executes the harness's file, whose init becomes the stage.
var again = &Way{Path: wire.ExecPath, MaxFiles: 1 << 20}

var theImage = sync.OnceValues(func() (*Way, error) { return newImage() })

// TheWay returns the way that this process takes: the image, or, where that
// cannot be executed, its own file. The error wraps errors.ErrUnsupported: this
// code is not in the file of the process's program, which may be anything.
func TheWay() (*Way, error) {
	image, err := theImage()
	switch {
	case errors.Is(err, errNotOurs):
		return nil, err
	case err != nil || image.refused.Load():
		return again, nil
	}
	return image, nil
}

// HasThreads reports whether the stage has the threads of a Go runtime, as it has where
// the image cannot be executed.
func HasThreads() bool {
	way, err := TheWay()
	return err != nil || way == again
}

var errNotOurs = fmt.Errorf("sandbox: this program's own executable does not hold this package (a plugin or shared library does): it cannot be a stage: %w", errors.ErrUnsupported)

// FirstGiven is where what a policy gives begins, when the tool's descriptors are
// the first tools.
func (w *Way) FirstGiven(tools int) int { return tools + 2 + len(w.files) }

// Files returns the files of a stage: the tool's, then the program, the socket,
// and what this way needs. The image itself is among them, so that os/exec, as it
// moves descriptors in the child, does not put another in its place, which Path
// would then name. What a policy gives comes last.
func (w *Way) Files(tools []*os.File, program, control *os.File, given ...*os.File) []*os.File {
	all := make([]*os.File, 0, len(tools)+2+len(w.files)+len(given))
	return append(append(append(append(all, tools...), program, control), w.files...), given...)
}
