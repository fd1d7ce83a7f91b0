package stage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// bare is a plan without namespaces, whose tool may connect to one address.
func bare(t *testing.T, to netip.AddrPort) plan.Plan {
	t.Helper()
	return supervised(t, supervisor.Rules{Connects: []supervisor.Endpoint{{Addr: to.Addr().As4(), Port: to.Port()}}}, plan.LoadSupervisor{Connects: []netip.AddrPort{to}, Network: true})
}

// supervised is a plan without namespaces, with a supervisor.
func supervised(t *testing.T, rules supervisor.Rules, load plan.LoadSupervisor) plan.Plan {
	t.Helper()
	blob, err := rules.Encode()
	if err != nil {
		t.Fatal(err)
	}
	filter, err := supervisor.FilterOf(runtime.GOARCH, &rules)
	if err != nil {
		t.Fatal(err)
	}
	var code bytes.Buffer
	binary.Write(&code, binary.LittleEndian, filter)
	program, err := seccomp.ParseProgram(code.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	load.Program, load.Rules = program, string(blob)
	return plan.Plan{DeadlineMS: 60_000, Steps: []plan.Step{
		{In: plan.Stage, Do: plan.OpenProc{}}, {In: plan.Init, Do: plan.SetNoNewPrivs{}}, {In: plan.Init, Do: plan.DropCapabilities{}}, {In: plan.Init, Do: plan.Undumpable{}},
		{In: plan.Tool, Do: plan.Chdir{}}, {In: plan.Tool, Do: plan.RestoreSignals{}},
		{In: plan.Tool, Do: load},
	}}
}

// TestKernelWithoutNamespacesTheToolConnectsToTheProxyAlone, and init makes the
// connection: with root's rights given up, as with an ordinary user's.
func TestKernelWithoutNamespacesTheToolConnectsToTheProxyAlone(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		c := kerneltest.Child{As: as}
		if as == kerneltest.Ordinary {
			c.Without = []kerneltest.Feature{kerneltest.UserNamespaces}
		}
		kerneltest.InChild(t, c, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasSeccompFilter)
			proxy, other := listenHere(t), listenHere(t)
			to := proxy.Addr().(*net.TCPAddr).AddrPort()
			go func() {
				if c, err := proxy.Accept(); err == nil {
					b := make([]byte, 4)
					c.Read(b)
					c.Write([]byte("pong"))
					c.Close()
				}
			}()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			if got := beginAt(t, exe, bare(t, to), "talk", "tcp4", proxy.Addr().String()).held().end(); got != "pong" {
				t.Errorf("the proxy: %q", got)
			}
			for _, addr := range []string{other.Addr().String(), "192.0.2.1:80", "[::1]:" + strings.TrimPrefix(proxy.Addr().String(), "127.0.0.1:")} {
				if got := beginAt(t, exe, bare(t, to), "talk", "tcp", addr).held().end(); !strings.Contains(got, "permission denied") && !strings.Contains(got, "connection refused") {
					t.Errorf("%s: %q", addr, got)
				}
			}
		})
	})
}

func listenHere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestKernelAHarnessThatDoesNotAnswerHoldsUpNoOpen: one that is stopped, has closed its end, answers what was not asked, or with what is no answer.
func TestKernelAHarnessThatDoesNotAnswerHoldsUpNoOpen(t *testing.T) {
	kerneltest.Long(t)
	for name, behave := range map[string]func(t *testing.T, f *os.File){
		"it is stopped":         func(*testing.T, *os.File) {},
		"it has closed its end": func(_ *testing.T, f *os.File) { f.Close() },
		"its answers are to another question": func(t *testing.T, f *os.File) {
			b := make([]byte, supervisor.QuestionBytes)
			var q supervisor.Question
			for q.Paths[0] != "/nowhere" { // the Go runtime may open something first
				n, err := f.Read(b)
				var ok bool
				if q, ok = supervisor.ReadQuestion(b[:n]); err != nil || !ok || q.Errno != int(unix.ENOENT) && q.Paths[0] == "/nowhere" {
					t.Fatalf("%+v, %v", q, err)
				}
			}
			for n := range uint64(3) {
				sendFile(t, f, supervisor.AnswerTo(q.ID+n+1))
			}
		},
		"its answers are none": func(t *testing.T, f *os.File) { sendFile(t, f, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.HasSeccompFilter)
				exe, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				p := supervised(t, supervisor.Rules{Watch: true, Patience: 1}, plan.LoadSupervisor{Watch: true})
				i := beginAt(t, exe, p, "open", "/nowhere").held()
				i.c.AwaitEvidence()
				if i.c.Questions == nil {
					t.Fatal("no socket has come")
				}
				if i.in.Close(); name != "it is stopped" {
					behave(t, i.c.Questions)
				}
				if got := i.end(); got != "no such file or directory" {
					t.Errorf("%s", got)
				}
			})
		})
	}
}

// sendFile sends a message with a descriptor. The tool may have waited its second, and ended: then the socket is closed.
func sendFile(t *testing.T, f *os.File, b []byte) {
	t.Helper()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		err = unix.Sendmsg(int(fd), b, unix.UnixRights(int(root.Fd())), nil, unix.MSG_NOSIGNAL)
	})
	if err != nil && err != unix.EPIPE && err != unix.ECONNRESET && err != unix.ECONNREFUSED {
		t.Error(err)
	}
}

func init() {
	moreTools["open"] = func(args []string) error { // when its input has ended
		io.Copy(io.Discard, os.Stdin)
		_, err := unix.Open(args[0], unix.O_RDONLY, 0)
		fmt.Print(err)
		return nil
	}
}
