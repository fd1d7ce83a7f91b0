package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// defaultPath is where a program is looked for without a PATH, as by execvp(3).
const defaultPath = "/bin:/usr/bin"

// enterRoot adds what a layout leaves to be found out inside: the tool, by its
// PATH, and its directory.
func (r *Run) enterRoot(s *stage.Run) (err error) {
	r.given = r.sandbox.given()
	if r.path == ownProgram {
		if r.exe, err = os.Open(ownProgram); err != nil {
			return err
		}
		r.given, s.Exe = append(r.given, r.exe), true
	}
	s.Given = len(r.given)
	if s.Dirs = r.rootDirs(s.Env); len(s.Dirs) > 1 {
		s.Env, s.SetsPWD = append(without(s.Env, "PWD"), "PWD="), true
	}
	s.Born, s.Built = r.born != nil, r.built != nil
	if strings.Contains(r.path, "/") {
		return nil
	}
	path, ok := valueOf(s.Env, "PATH")
	if !ok {
		path = defaultPath
	}
	var candidates []string
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "." // as execvp(3) takes it
		}
		candidates = append(candidates, dir+"/"+r.path)
	}
	if len(candidates) == 0 {
		candidates = []string{r.path}
	}
	s.Path, s.More = candidates[0], candidates[1:]
	return nil
}

// ownProgram is the harness's own program, wherever it lies. The process that
// becomes the tool is not an instance of it, so it gets it as a descriptor.
const ownProgram = "/proc/self/exe"

// rootDirs are the directories that the tool may start in, in order: the
// command's Dir alone, or the harness's own, the policy's, HOME and the root. PWD is what os/exec
// makes of it, unless it is to say that the tool is not where the harness is.
func (r *Run) rootDirs(env []string) []stage.Dir {
	if dir := r.saved.dir; filepath.IsAbs(dir) {
		return []stage.Dir{{Path: dir}}
	} else if dir != "" {
		wd, _ := os.Getwd() // where dir is relative to, as it is written
		return []stage.Dir{{Path: wd + "/" + dir}}
	}
	var dirs []stage.Dir
	if dir := harnessDir(env); dir != "" {
		first := stage.Dir{Path: dir, PWD: dir}
		if r.cmd.Env != nil {
			first.PWD, _ = valueOf(env, "PWD") // it is the caller's
		}
		dirs = append(dirs, first)
	}
	if dir := r.sandbox.Policy.Dir; dir != "" {
		dirs = append(dirs, stage.Dir{Path: dir, PWD: dir})
	}
	if home, _ := valueOf(env, "HOME"); home != "" {
		dirs = append(dirs, stage.Dir{Path: home, PWD: home})
	}
	return append(dirs, stage.Dir{Path: "/", PWD: "/"})
}

// harnessDir is the harness's directory, by the name that env has for it, if that is
// right.
func harnessDir(env []string) string {
	if pwd, _ := valueOf(env, "PWD"); filepath.IsAbs(pwd) {
		a, err1 := os.Stat(pwd)
		b, err2 := os.Stat(".")
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return pwd
		}
	}
	dir, err := os.Readlink("/proc/self/cwd")
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// valueOf returns the value of a variable, of which the last counts.
func valueOf(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

func without(env []string, name string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}

// given are the descriptors that the policy gives each run's stage, in the order
// of joins.
func (s *Sandbox) given() []*os.File {
	if s.Policy.Root == nil {
		return nil
	}
	var files []*os.File
	for _, f := range []*os.File{s.Policy.Root.Namespaces.User, s.Policy.Root.Namespaces.PID, s.Policy.Root.Namespaces.ThenUser} {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// pass calls the command's hook for a gate that the stage waits at.
func (r *Run) pass(gate int) error {
	hook := r.born
	if gate == wire.GateBuilt {
		hook = r.built
	}
	if hook == nil {
		return nil
	}
	pid := r.control.PID()
	if r.sandbox.Plan.AsPID1 {
		pid = onlyChild(pid)
	}
	return hook(pid)
}

// onlyChild returns the process that pid has made; 0: it is not known.
func onlyChild(pid int) (child int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	fmt.Fscan(bytes.NewReader(text), &child)
	return child
}
