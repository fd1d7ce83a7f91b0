package sbpl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// leastPairs is how many pairs of a profile and an act there are at least: a table that
// has shrunk must not pass unnoticed.
const leastPairs = 53_000

// TestKernelAgrees runs every act in a sandbox of every profile, and compares what
// the kernel does with what the profile says. They may differ only where the rule
// that decided has a difference for that operation, on that side.
func TestKernelAgrees(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			names := profileNames(t)
			if raced || !kerneltest.All(t) {
				names = everyTenth(names)
			}
			total := tally{reasons: map[string]int{}}
			for _, name := range names {
				t.Run(name, func(t *testing.T) { agree(t, name, &total) })
			}
			t.Logf("%d profiles, %d pairs of a profile and an act: %d agree, %d differ as their rules say (%d narrower, %d wider, %d the sandbox's own)",
				len(names), total.pairs, total.pairs-total.narrower-total.wider-total.own, total.narrower+total.wider+total.own, total.narrower, total.wider, total.own)
			for _, why := range sorted(total.reasons) {
				t.Logf("%5d %s", total.reasons[why], why)
			}
			if !raced && kerneltest.All(t) && 2*total.pairs < leastPairs {
				t.Errorf("%d pairs for each user, want %d", total.pairs, leastPairs/2)
			}
		})
	})
}

// everyTenth leaves the first of each ten names.
func everyTenth(names []string) (few []string) {
	for i := 0; i < len(names); i += 10 {
		few = append(few, names[i])
	}
	return few
}

// tally counts pairs.
type tally struct {
	pairs, narrower, wider, own int
	reasons                     map[string]int
}

func agree(t *testing.T, name string, total *tally) {
	w := makeWorld(t)
	exe := filepath.Join(w.Root, "actor")
	p := readProfile(t, name, w, exe)
	policy, rules, err := p.Policy(Options{})
	if err != nil {
		t.Fatal(err)
	}
	here, err := p.Here()
	if err != nil {
		t.Fatal(err)
	}
	got := tried(t, policy, exe, w)
	acts := allActs(w)
	if len(got) != len(acts) {
		t.Fatalf("%d acts were tried of %d", len(got), len(acts))
	}
	for _, a := range acts {
		total.pairs++
		compare(t, here, rules, a, got[a.name], total)
	}
	for _, r := range rules {
		for _, d := range r.Differences {
			if d.Why == "" || len(d.Operations) == 0 {
				t.Errorf("%s: approximate, and no reason: %+v", r, d)
			}
		}
	}
}

// compare holds one act against the profile.
func compare(t *testing.T, here *Profile, rules []Rule, a act, errno syscall.Errno, total *tally) {
	allowed := true
	var why []string
	var excuses []Toward
	excused, reason := 0, ""
	for _, ask := range a.asks {
		operation, made, _ := strings.Cut(ask[0], " ")
		v, rule := decided(here, question{operation: operation, at: ask[1], kind: kind(made)})
		why = append(why, fmt.Sprintf("%s %s: %v: %s", ask[0], ask[1], v.Allow, v.Why))
		d := (*Difference)(nil)
		for i := range rules[rule].Differences {
			one := &rules[rule].Differences[i]
			if d == nil && one.concerns(operation) && (one.Toward == Narrower) == v.Allow {
				d = one
			}
		}
		if !v.Allow && allowed {
			allowed, excuses, excused = false, nil, 0
		}
		if v.Allow == allowed && d != nil {
			excuses, reason = append(excuses, d.Toward), string(d.Toward)+" "+ask[0]+": "+d.Why
			excused++
		} else if v.Allow == allowed && !allowed {
			excused -= 1000 // each denial has to be excused
		}
	}
	if allowed == (errno == 0) {
		return
	}
	if excused <= 0 {
		t.Errorf("%s: errno %d (%v), but\n\t%s", a.name, int(errno), errno, strings.Join(why, "\n\t"))
		return
	}
	total.reasons[reason]++
	switch {
	case slices.Contains(excuses, Wider):
		total.wider++
	case slices.Contains(excuses, Own):
		total.own++
	default:
		total.narrower++
	}
}

// tried runs the actor in a sandbox and returns an errno for each act.
func tried(t *testing.T, policy sandbox.Policy, exe string, w world) map[string]syscall.Errno {
	s, err := sandbox.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	arg, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.Command(exe, string(arg))
	cmd.Args[0] = beActor
	cmd.Env = []string{}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v %s\n%s", err, errs.String(), s.Explain())
	}
	if !cmd.Report().Held() {
		t.Error(cmd.Report())
	}
	list := map[string]syscall.Errno{}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		number, name, _ := strings.Cut(lines.Text(), " ")
		errno, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(lines.Text())
		}
		list[name] = syscall.Errno(errno)
	}
	return list
}

// makeWorld makes the tree, and what listens.
func makeWorld(t *testing.T) world {
	dir, err := os.MkdirTemp("", "") // short: it has sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w := world{Root: root, Outside: os.Getpid()}
	exe, err := os.ReadFile("/proc/self/exe")
	must(err)
	must(os.WriteFile(root+"/actor", exe, 0o755))
	for _, p := range places {
		dir := filepath.Join(root, p)
		must(os.MkdirAll(dir, 0o755))
		for _, name := range files {
			must(os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o644))
		}
		must(unix.Mkfifo(dir+"/pipe", 0o644))
		must(unix.Setxattr(dir+"/attr", "user.a", []byte("1"), 0))
		must(os.Link(root+"/actor", dir+"/program"))
	}
	must(os.Symlink("../link-target", root+"/ws/link"))
	must(os.Symlink("link-target", root+"/link"))
	must(os.MkdirAll(root+"/run", 0o755))
	for _, name := range []string{"run/stream", "other/stream"} {
		listens(t, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: root + "/" + name})
	}
	listens(t, unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: root + "/run/datagram"})
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	w.TCP = listens(t, unix.AF_INET, unix.SOCK_STREAM, loopback)
	w.UDP = listens(t, unix.AF_INET, unix.SOCK_DGRAM, loopback)
	must(withSocket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error {
		w.Free = bound(t, fd, loopback)
		return nil
	}))
	return w
}

// listens binds a socket for as long as the test runs, and returns its port.
func listens(t *testing.T, domain, kind int, at unix.Sockaddr) int {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	port := bound(t, fd, at)
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 8); err != nil {
			t.Fatal(err)
		}
	}
	return port
}

func bound(t *testing.T, fd int, at unix.Sockaddr) int {
	if err := unix.Bind(fd, at); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	if in, ok := name.(*unix.SockaddrInet4); ok {
		return in.Port
	}
	return 0
}
