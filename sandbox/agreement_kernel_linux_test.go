package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/verdict"
)

// tryingTool is the argv[0] by which this program knows that it is to try acts.
const tryingTool = "holdfast-try-acts"

func init() {
	if os.Args[0] == tryingTool {
		var acts []Access
		if err := json.NewDecoder(os.Stdin).Decode(&acts); err != nil {
			panic(err)
		}
		results := make([]syscall.Errno, len(acts))
		for i, a := range acts {
			results[i] = tryAct(a)
		}
		json.NewEncoder(os.Stdout).Encode(results)
		os.Exit(0)
	}
}

// prepare makes what an act is about, as far as it can: on the host for what is
// shown, and inside for what is the run's own.
func prepare(a Access) {
	os.MkdirAll(path.Dir(a.Path), 0o755)
	if a.To != "" && a.Op != OpSymlink {
		os.MkdirAll(path.Dir(a.To), 0o755)
	}
	switch a.Op {
	case OpCreate, OpSymlink, OpBind:
		return
	}
	if a.Dir {
		os.Mkdir(a.Path, 0o755)
	} else if f, err := os.OpenFile(a.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755); err == nil {
		f.WriteString("neither a program nor a script\n")
		f.Close()
	}
}

// tryAct tries an act and says what the kernel has said.
func tryAct(a Access) syscall.Errno {
	prepare(a)
	var err error
	switch a.Op {
	case OpRead:
		err = opens(a.Path, os.O_RDONLY)
	case OpList:
		_, err = os.ReadDir(a.Path)
	case OpStat:
		_, err = os.Lstat(a.Path)
	case OpWrite:
		err = opens(a.Path, os.O_WRONLY)
	case OpCreate:
		if a.Dir {
			err = os.Mkdir(a.Path, 0o755)
		} else {
			if err = opens(a.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err == nil {
				_, err = os.Lstat(a.Path) // a file named .git is opened, and does not appear: see the supervisor
			}
		}
	case OpRemove:
		err = os.Remove(a.Path)
	case OpRename:
		err = syscall.Rename(a.Path, a.To)
	case OpLink:
		err = os.Link(a.Path, a.To)
	case OpSymlink:
		err = os.Symlink(a.To, a.Path)
	case OpChmod:
		err = os.Chmod(a.Path, 0o700)
	case OpExecute:
		if _, err = syscall.ForkExec(a.Path, []string{a.Path}, nil); errors.Is(err, syscall.ENOEXEC) {
			err = nil // it would have been executed, had it been a program
		}
	case OpBind:
		var l net.Listener
		if l, err = net.Listen("unix", a.Path); err == nil {
			l.Close()
		}
	}
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		return syscall.EINVAL
	}
	return errno
}

func opens(p string, flags int) error {
	f, err := os.OpenFile(p, flags|syscall.O_NONBLOCK, 0o755)
	if err == nil {
		f.Close()
	}
	return err
}

// refusals by which the kernel says that an act is not allowed, or that there is
// nothing: what is not shown does not exist.
var kernelRefusals = []syscall.Errno{
	syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOENT, syscall.EBUSY, syscall.ENXIO, syscall.ENOTDIR, syscall.EEXIST, syscall.ENOTEMPTY,
}

// moved puts a generated policy below dir, and its directories there.
func moved(p Policy, dir string) Policy {
	f := &p.Files
	for _, list := range []*[]string{&f.Read, &f.Write, &f.Hide, &f.Private, &f.CopyOnWrite} {
		for i, at := range *list {
			(*list)[i] = dir + at
			os.MkdirAll(dir+at, 0o755)
		}
	}
	for i := range f.Make {
		f.Make[i].Path = dir + f.Make[i].Path
	}
	return p
}

// kernelAct makes up an act on a name of its own, so that acts do not meet.
func (g *generator) kernelAct(n int, places []string) Access {
	for {
		a := Access{Op: pick(g, OpRead, OpList, OpStat, OpWrite, OpCreate, OpRemove, OpRename, OpLink, OpSymlink, OpChmod, OpExecute, OpBind), Dir: g.IntN(3) == 0}
		leaf := func() string {
			return pick(g, "plain", "plain", ".bashrc", ".BASHRC", ".vscode/x", ".git/hooks/x", ".git", ".git/info", ".git/modules/m", ".env", "secret")
		}
		at := func(m string) string { return pathrule.Join(pick(g, places...), fmt.Sprintf("n%d%s/%s", n, m, leaf())) }
		a.Path = at("")
		switch a.Op {
		case OpList:
			a.Dir = true
		case OpRead, OpWrite, OpLink, OpExecute, OpSymlink, OpBind:
			a.Dir = false
		}
		switch a.Op {
		case OpRename, OpLink:
			a.To = at("t")
		case OpSymlink:
			a.To = "a"
		case OpBind:
			a.Network = "unix"
		}
		if a.Op != OpBind || len(a.Path) < 100 { // sun_path
			return a
		}
	}
}

// TestKernelActsAreAllowedAsThePolicySays: generated policies, each in a sandbox,
// in which a tool tries generated acts.
func TestKernelActsAreAllowedAsThePolicySays(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			g := newGenerator(5)
			home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
			if err != nil {
				t.Fatal(err)
			}
			pairs, allowed := 0, 0
			for n := 0; n < kerneltest.Amount(t, 4, 10, 16); {
				dir := filepath.Join(home, fmt.Sprint(n))
				p := moved(kernelPolicy(g), dir)
				for _, sys := range []string{exe, "/usr", "/lib", "/lib64"} {
					if _, err := os.Stat(sys); err == nil {
						p.Files.Read = append(p.Files.Read, sys)
					}
				}
				s, err := New(p)
				if err != nil {
					os.RemoveAll(dir)
					continue
				}
				n++
				var acts []Access
				places := slices.DeleteFunc(rulePaths(p), func(at string) bool { return !pathrule.Within(at, dir) || strings.HasSuffix(at, ".made") })
				places = append(places, dir+"/elsewhere")
				for i := range 40 {
					acts = append(acts, g.kernelAct(i, places))
				}
				p2, a2 := tryInside(t, s, exe, acts)
				pairs, allowed = pairs+p2, allowed+a2
			}
			t.Logf("%d pairs, of which %d are allowed", pairs, allowed)
			if allowed < pairs/10 || allowed > pairs*9/10 {
				t.Error("the acts are all of one kind")
			}
		})
	})
}

// kernelPolicy leaves out what the test's own tool could not run under.
func kernelPolicy(g *generator) Policy {
	for {
		p := g.policy()
		p.Open = nil
		own := rulePaths(p)
		if _, err := verdict.New(p); err != nil || slices.Contains(own, "/") || len(own) == 0 || slices.ContainsFunc(own, func(at string) bool { return pathrule.Within(at, "/dev") }) {
			continue
		}
		p.Limits.WallClock = 0
		return p
	}
}

func tryInside(t *testing.T, s *Sandbox, exe string, acts []Access) (pairs, allowed int) {
	t.Helper()
	for _, a := range acts {
		prepare(a)
	}
	text, err := json.Marshal(acts)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Command(exe)
	c.Args, c.Dir, c.Stdin, c.Stderr = []string{tryingTool}, "/", strings.NewReader(string(text)), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, describe(s.ready.Policy))
	}
	var results []syscall.Errno
	if err := json.Unmarshal(out, &results); err != nil || len(results) != len(acts) {
		t.Fatalf("%v: %q", err, out)
	}
	for i, a := range acts {
		ok, why := s.evaluator().Allows(a)
		errno := results[i]
		pairs++
		if ok {
			allowed++
		}
		switch {
		case ok == (errno == 0):
		case ok && errno == syscall.EXDEV && (a.Op == OpRename || a.Op == OpLink): // two mounts: it copies
		case ok && errno == syscall.ENOENT && cannotPrepare(s, a): // nothing is there in a directory of the run's own
		case ok || !slices.Contains(append(kernelRefusals, syscall.EXDEV), errno):
			t.Errorf("%+v\nof %s\nthe policy says %v (%v), the kernel says %v", a, describe(s.ready.Policy), ok, why, errno)
		}
	}
	return pairs, allowed
}

// cannotPrepare reports whether what the act is about can neither be there from
// the start nor be made.
func cannotPrepare(s *Sandbox, a Access) bool {
	for _, p := range []string{a.Path, a.To} {
		if p == "" {
			continue
		}
		private := slices.ContainsFunc(s.ready.Policy.Files.Private, func(at string) bool { return pathrule.Within(p, at) })
		if ok, _ := s.evaluator().Allows(Access{Op: OpCreate, Path: p, Dir: p == a.Path && a.Dir}); private && !ok {
			return true
		}
		for dir := path.Dir(p); dir != "/" && private; dir = path.Dir(dir) {
			if ok, _ := s.evaluator().Allows(Access{Op: OpCreate, Path: dir, Dir: true}); !ok && !slices.Contains(s.ready.Policy.Files.Private, dir) {
				return true
			}
			private = !slices.Contains(s.ready.Policy.Files.Private, dir)
		}
	}
	return false
}
