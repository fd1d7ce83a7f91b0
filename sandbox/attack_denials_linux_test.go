package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

func tryManyDenied(args []string) {
	n, _ := strconv.Atoi(args[1])
	os.Chdir(args[0])
	made(".bashrc")
	for i := range n {
		made(".holdfast-" + strconv.Itoa(i))
	}
	made(".bashrc")
	fmt.Println("done")
}

// TestKernelFloodOfDenialsKeepsTheFirst: 100,000 different denials take no more room than the first of them, which stay.
func TestKernelFloodOfDenialsKeepsTheFirst(t *testing.T) {
	kerneltest.Parallel(t)
	n := kerneltest.Amount(t, 1000, 10_000, 30_000)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, dir := deniedSandbox(t, w)
		n := n
		if w.name != allWalls {
			n = min(n, 10_000)
		}
		c := hostile(t, s, "denied a lot", dir, strconv.Itoa(n))
		if out, err := c.CombinedOutput(); string(out) != "done\n" || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r := c.Report()
		if len(r.Violations) != 128 || r.Violations[0].Path != filepath.Join(dir, ".bashrc") || r.Violations[0].Count != 2 || r.Violations[127].Path != filepath.Join(dir, ".holdfast-126") {
			t.Errorf("%d violations, %v to %v", len(r.Violations), r.Violations[0], r.Violations[len(r.Violations)-1])
		}
		if note := fmt.Sprintf("%d denials more than are listed", n-127); !slices.Contains(r.Bound(policy.BoundFiles).Notes, note) {
			t.Errorf("notes: %q", r.Bound(policy.BoundFiles).Notes)
		}
	})
}

const oddName = "a\nb\x1b[2J\x7f\xff\u202e"

// tryOddDenied is denied names of odd bytes and of the greatest length, by processes that lie about who they are.
func tryOddDenied(args []string) {
	os.Chdir(args[0])
	name := []byte("\x1b]0;x\x07\ninit\x00")
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	for _, a := range os.Args { // they lie in the memory that /proc/PID/cmdline shows
		b := unsafe.Slice(unsafe.StringData(a), len(a))
		for i := range b {
			b[i] = "sudo\x1b[31m\n"[i%10]
		}
	}
	if err := os.MkdirAll(oddName+"/.vscode", 0o755); err == nil {
		fmt.Println("made")
	}
	deep, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	for n := len(args[0]); n+250+len(".bashrc")+2 < unix.PathMax && err == nil; n += 251 {
		d := strings.Repeat("x", 250)
		if err = unix.Mkdirat(deep, d, 0o755); err == nil {
			deep, err = unix.Openat(deep, d, unix.O_PATH|unix.O_DIRECTORY, 0)
		}
	}
	if err == nil {
		_, err = unix.Openat(deep, ".bashrc", unix.O_CREAT|unix.O_WRONLY, 0o644)
	}
	fmt.Println(err)
}

func TestKernelDenialsOfHostileTextArePrintable(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, dir := deniedSandbox(t, w)
		c := hostile(t, s, "denied in odd words", dir)
		if out, err := c.CombinedOutput(); string(out) != "permission denied\n" || err != nil {
			t.Fatalf("%q %v", out, err)
		}
		r := c.Report()
		if len(r.Violations) != 2 || len(r.Violations[1].Path) != 1024 || !strings.Contains(r.Violations[0].Path, ".vscode") {
			t.Fatalf("%+v", r.Violations)
		}
		texts := []string{strings.ReplaceAll(r.String(), "\n", "")}
		for _, v := range r.Violations {
			texts = append(texts, v.String(), v.Path, v.Claimed)
			if !strings.Contains(v.Claimed, "sudo") {
				t.Errorf("the process says %q of itself, and the report %q", "sudo ...", v.Claimed)
			}
		}
		for _, text := range texts {
			for _, c := range text {
				if c < ' ' || c == 0x7f || c == 0x202e || c == 0xfffd {
					t.Errorf("%q is not printable", text)
					break
				}
			}
		}
	})
}

// tryAndWait is denied something by two processes, and waits for a line.
func tryAndWait(args []string) {
	os.Chdir(args[0])
	if len(args) > 1 {
		made(".bashrc")
		made("." + args[1])
		return
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Println(err)
	}
	for _, name := range []string{"zshrc", "profile"} {
		p, err := os.StartProcess(exe, []string{attackTool, "denied and waiting", args[0], name}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			fmt.Println(err)
			break
		}
		p.Wait()
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}

// TestKernelDenialsAreReadMidRunAndAfterAKill: they are there while the tool runs, and when init was killed with it; of two
// processes that were denied the same the first is named.
func TestKernelDenialsAreReadMidRunAndAfterAKill(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, dir := deniedSandbox(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := hostileContext(t, s, ctx, "denied and waiting", dir)
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("ready\n"))
		if n, err := stdout.Read(line); string(line[:n]) != "ready\n" {
			t.Fatalf("%q, %v", line[:n], err)
		}
		judge := func(when string, r *Report) {
			var got []string
			pids := map[int]bool{}
			for _, v := range r.Violations {
				got = append(got, fmt.Sprint(filepath.Base(v.Path), v.Count))
				pids[v.PID] = true
			}
			if want := []string{".bashrc2", ".zshrc1", ".profile1"}; !slices.Equal(got, want) || len(pids) != 2 || r.Violations[0].PID != r.Violations[1].PID {
				t.Errorf("%s: %q of processes %v", when, got, pids)
			}
		}
		r := c.Report()
		if r.Status != "running" {
			t.Errorf("status %q", r.Status)
		}
		judge("while it runs", r)
		cancel()
		c.Wait()
		judge("after it was killed", c.Report())
	})
}

func hostileContext(t *testing.T, s *Sandbox, ctx context.Context, args ...string) *Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := s.CommandContext(ctx, exe)
	c.Args = append([]string{attackTool}, args...)
	c.Dir = "/"
	return c
}

// seekDenials looks for the table among all that the processes of the sandbox show, and in descriptors that it may take.
func seekDenials([]string) {
	const name = "holdfast denials"
	list, _ := filepath.Glob("/proc/[0-9]*")
	list = append(list, "/proc/self", "/proc/thread-self")
	for _, dir := range list {
		for _, pattern := range []string{"/fd/*", "/map_files/*", "/task/*/fd/*"} {
			links, _ := filepath.Glob(dir + pattern)
			for _, l := range links {
				if to, _ := os.Readlink(l); strings.Contains(to, name) {
					fmt.Println("FOUND", l)
				}
			}
		}
		if maps, _ := os.ReadFile(dir + "/maps"); strings.Contains(string(maps), name) {
			fmt.Println("FOUND", dir+"/maps")
		}
	}
	own := keepersOf()
	if own == nil {
		own = []int{os.Getppid()} // init, in a pid namespace
	}
	for _, pid := range own {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			for n := range 64 {
				if got, err := unix.PidfdGetfd(fd, n, 0); err == nil {
					fmt.Println("TAKEN", pid, n, got)
				}
			}
		}
		if err := unix.PtraceAttach(pid); err == nil {
			fmt.Println("TRACED", pid)
		}
		if f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0); err == nil {
			fmt.Println("OPENED", f.Name())
		}
	}
	fmt.Println("done")
}

// TestKernelTableOfDenialsIsOutOfReach: neither the table's memory nor a descriptor of it is anywhere that the tool can reach.
func TestKernelTableOfDenialsIsOutOfReach(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, _ := deniedSandbox(t, w)
		if out, err := hostile(t, s, "seek denials").CombinedOutput(); string(out) != "done\n" || err != nil {
			t.Errorf("%s%v", out, err)
		}
	})
}

// TestKernelDeniedConnectIsReported: without a network namespace the supervisor refuses addresses that are not the proxies'.
func TestKernelDeniedConnectIsReported(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[3:4], func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		p := attackPolicy(t, base, w)
		p.Network.Hosts = []string{"example.org:443"}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s := attackSandbox(t, p, w)
		c := hostile(t, s, "denied a connection", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		if out, err := c.CombinedOutput(); string(out) != "connection refused\n" || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		v := c.Report().Violations
		if len(v) != 1 || v[0].Bound != policy.BoundNetwork || v[0].Operation != "connect" || v[0].Path != l.Addr().String() {
			t.Errorf("%+v", v)
		}
	})
}

var _ = offer(programs, "denied a connection", func(args []string) {
	port, _ := strconv.Atoi(args[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port})
	}
	fmt.Println(err)
})
