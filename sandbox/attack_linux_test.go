package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// The attack tests run this test binary as a hostile tool. An attack is a list
// of acts; the tool tries each and prints what came of it, and the test
// compares that with what the policy promises. The same acts are tried by a
// plain exec.Command where that harms nothing: one that fails there shows
// nothing here.

// attackTool is the argv[0] by which this program knows that it is the tool.
const attackTool = "holdfast-attack"

// An act is one thing a hostile tool tries. It answers nil when it got what it
// wanted, and an error when it did not.
type act struct {
	name string
	try  func(ground) error
	// tame: it may be tried without any walls, and must succeed there; asRoot: it
	// may too, and must if it is root who tries.
	tame, asRoot bool
	// bare: it must succeed as root, in namespaces of its own that nothing locks.
	bare bool
	// never is why it succeeds nowhere, or where it does must not be tried.
	never string
	// works: it is no attack, and must succeed inside too.
	works bool
	// unheld lists the walls that cannot hold it, where it must succeed; or, of one
	// that works, those in which it does not.
	unheld []string
	// lacks are errors by which a kernel or a file system says that it has no such
	// thing, beside unknownHere: an act that fails by one shows nothing.
	lacks []error
}

// A ground is what one act has to itself: directories made for it alone.
type ground struct {
	write   string // granted to write
	read    string // granted to read
	secret  string // not granted
	harness int    // the harness's pid
}

// attacks are the lists of acts, by name.
var attacks = map[string][]act{}

// programs are hostile tools that are more than a list of acts.
var programs = map[string]func(args []string){}

// offer puts lists and programs where the tool finds them. It is called while
// variables are initialised, since init below does not return in a tool.
func offer[T any](where map[string]T, name string, what T) bool {
	where[name] = what
	return true
}

func init() {
	if len(os.Args) > 1 && os.Args[0] == attackTool {
		if program := programs[os.Args[1]]; program != nil {
			program(os.Args[2:])
		} else {
			tryAll(os.Args[1], os.Args[2], os.Args[3])
		}
		os.Exit(0)
	}
}

// tryAll is the tool's main: it tries the acts of one list, or those that are
// tame, or one alone.
func tryAll(name, base, which string) {
	harness, _ := strconv.Atoi(os.Getenv("HARNESS"))
	for i, a := range attacks[name] {
		switch {
		case which == "all", which == "tame" && a.isTame(), which == strconv.Itoa(i):
		default:
			continue
		}
		outcome := "succeeded"
		if err := a.try(groundOf(base, i, harness)); err != nil {
			outcome = err.Error()
		}
		fmt.Printf("%d\t%s\n", i, outcome)
	}
}

// isTame reports whether this user can show that the act succeeds without walls.
func (a act) isTame() bool { return a.tame || a.asRoot && os.Getuid() == 0 }

// unknownHere are the errors by which a kernel says that it has no such thing.
var unknownHere = []error{unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP}

// isLacking reports whether an act's outcome shows nothing on this host.
func (a act) isLacking(outcome string) bool {
	lacks := slices.Concat(unknownHere, a.lacks)
	if kerneltest.Filtered() { // and parts of /proc are covered
		lacks = append(lacks, unix.EPERM, errNotThere)
	}
	for _, err := range lacks {
		if outcome == err.Error() || strings.HasSuffix(outcome, ": "+err.Error()) {
			return true
		}
	}
	return false
}

func groundOf(base string, i, harness int) ground {
	n := strconv.Itoa(i)
	return ground{filepath.Join(base, "write", n), filepath.Join(base, "read", n), filepath.Join(base, "secret", n), harness}
}

// attackPolicy shows the system, this program, and base's read and write.
func attackPolicy(t *testing.T, base string, w walls) Policy {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{May: w.may, Files: Files{Read: []string{exe}, Private: []string{"/tmp"}, Protect: policy.Protect{Off: true}}, Env: Env{Pass: []string{"HARNESS", "ATTACK_*"}}}
	if pathrule.Within(base, "/tmp") && slices.Contains(w.without, kerneltest.Namespaces) {
		p.Files.Private = nil
	}
	for _, d := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"} {
		if _, err := os.Stat(d); err == nil {
			p.Files.Read = append(p.Files.Read, d)
		}
	}
	if base != "" {
		p.Files.Read = append(p.Files.Read, filepath.Join(base, "read"))
		p.Files.Write = append(p.Files.Write, filepath.Join(base, "write"))
	}
	if w.noCalls {
		p.Syscalls = seccomp.Off()
	}
	return p
}

// attackSandbox makes the sandbox with w's mechanism dropped behind its back.
func attackSandbox(t *testing.T, p Policy, w walls) *Sandbox {
	t.Helper()
	dropForTest = w.drop
	defer func() { dropForTest = "" }()
	s, err := New(p)
	if err == nil && w.abi != 0 {
		s.facts.Landlock.Value = w.abi
		err = s.compile()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hostile makes a command that runs this program as a tool.
func hostile(t *testing.T, s *Sandbox, args ...string) *Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := s.Command(exe)
	c.Args = append([]string{attackTool}, args...)
	c.Dir = "/"
	return c
}

// hostileBare makes the same command without any walls.
func hostileBare(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Args = append([]string{attackTool}, args...)
	c.Dir = "/"
	return c
}

// makeGrounds makes the directories of n acts, each with a file of one line.
func makeGrounds(t *testing.T, n int) string {
	t.Helper()
	base := t.TempDir()
	for i := range n {
		f := groundOf(base, i, 0)
		for _, dir := range []string{f.write, f.read, f.secret} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "file"), []byte("original\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return base
}

// attackWith runs a list of acts inside w and judges them.
func attackWith(t *testing.T, list string, w walls, change func(base string, p *Policy)) {
	acts := attacks[list]
	t.Setenv("HARNESS", strconv.Itoa(os.Getpid()))
	base := makeGrounds(t, len(acts))
	p := attackPolicy(t, base, w)
	if change != nil {
		change(base, &p)
	}
	s := attackSandbox(t, p, w)
	if !s.ready.Plan.Namespaces.Mount {
		w.name = noNamespaces // root can make them without a user namespace, others cannot
	} else if w.name == noOwnProc && !s.facts.SharedPIDs {
		w.name = noUserNS // so root has a procfs
	}
	root, err := unix.Open("/", unix.O_RDONLY, 0) // left open, and not to be closed on exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	c := hostile(t, s, list, base, "all")
	var said, complained bytes.Buffer
	c.Stdout, c.Stderr = &said, &complained
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s%s\n%s", err, said.Bytes(), complained.Bytes(), c.Report())
	}
	if complained.Len() > 0 {
		t.Log(complained.String())
	}
	outcomes := parseOutcomes(said.String())
	for i, a := range acts {
		got, tried := outcomes[i]
		switch succeeded := got == "succeeded"; {
		case !tried:
			t.Errorf("%s: was not tried", a.name)
		case a.works && !succeeded && !slices.Contains(a.unheld, w.name) && !(kerneltest.Filtered() && a.isLacking(got)):
			t.Errorf("%s: must work, but: %s", a.name, got)
		case !a.works && succeeded && !slices.Contains(a.unheld, w.name):
			t.Errorf("ESCAPE: %s", a.name)
		case !a.works && !succeeded && slices.Contains(a.unheld, w.name) && !a.isLacking(got):
			t.Errorf("%s: said not to be held, and is: %s", a.name, got)
		default:
			t.Logf("%s: %s", a.name, got)
		}
	}
	untouched(t, base, len(acts))
}

// attackPlainly tries the tame acts without walls: each must succeed, or its
// failure inside would prove nothing.
func attackPlainly(t *testing.T, list string) {
	acts := attacks[list]
	base := makeGrounds(t, len(acts))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Args = []string{attackTool, list, base, "tame"}
	root, err := os.Open("/") // as a careless harness leaves it open
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c.ExtraFiles = []*os.File{root}
	c.Env = append(os.Environ(), "HARNESS="+strconv.Itoa(os.Getpid()))
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outcomes := parseOutcomes(string(out))
	for i, a := range acts {
		if a.isTame() && outcomes[i] != "succeeded" && !a.isLacking(outcomes[i]) {
			t.Errorf("%s: fails without walls too: %s", a.name, outcomes[i])
		}
	}
}

func parseOutcomes(text string) map[int]string {
	outcomes := map[int]string{}
	for line := range strings.Lines(text) {
		n, outcome, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if i, err := strconv.Atoi(n); err == nil {
			outcomes[i] = outcome
		}
	}
	return outcomes
}

// untouched looks at the disk, whatever the tool has said of itself.
func untouched(t *testing.T, base string, n int) {
	t.Helper()
	for i := range n {
		f := groundOf(base, i, 0)
		for _, dir := range []string{f.read, f.secret} {
			names, err := os.ReadDir(dir)
			text, readErr := os.ReadFile(filepath.Join(dir, "file"))
			if err != nil || readErr != nil || len(names) != 1 || string(text) != "original\n" {
				t.Errorf("ESCAPE: act %d changed %s: %v, %q (%v)", i, dir, names, text, errors.Join(err, readErr))
			}
		}
	}
}

// readsSecret is the outcome of reading a file that holds "original".
func readsSecret(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return shortError(err)
	}
	if !strings.Contains(string(b), "original") {
		return fmt.Errorf("not the secret: %q", b)
	}
	return nil
}

// shortError leaves the path out of an error.
func shortError(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	var s *os.SyscallError
	switch {
	case errors.As(err, &p):
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	case errors.As(err, &l):
		return fmt.Errorf("%s: %w", l.Op, l.Err)
	case errors.As(err, &s):
		return fmt.Errorf("%s: %w", s.Syscall, s.Err)
	}
	return err
}

// rawCall makes a system call and answers its errno.
func rawCall(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// reached answers nil for the error that a call gives once it has got past who
// may make it: the rest of it would harm the machine.
func reached(err, past error) error {
	if errors.Is(err, past) {
		return nil
	}
	if err == nil {
		return errors.New("it did what it should not")
	}
	return err
}
