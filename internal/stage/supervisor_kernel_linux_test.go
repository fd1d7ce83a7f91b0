package stage

import (
	"bytes"
	"encoding/binary"
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
)

// bare is a plan without namespaces, whose tool may connect to one address.
func bare(t *testing.T, to netip.AddrPort) plan.Plan {
	t.Helper()
	rules := supervisor.Rules{Connects: []supervisor.Endpoint{{Addr: to.Addr().As4(), Port: to.Port()}}}
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
	return plan.Plan{DeadlineMS: 60_000, Steps: []plan.Step{
		{In: plan.Stage, Do: plan.OpenProc{}}, {In: plan.Init, Do: plan.SetNoNewPrivs{}}, {In: plan.Init, Do: plan.DropCapabilities{}}, {In: plan.Init, Do: plan.Undumpable{}},
		{In: plan.Tool, Do: plan.Chdir{}}, {In: plan.Tool, Do: plan.RestoreSignals{}},
		{In: plan.Tool, Do: plan.LoadSupervisor{Program: program, Rules: string(blob), Connects: []netip.AddrPort{to}, Network: true}},
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
				if got := beginAt(t, exe, bare(t, to), "talk", "tcp", addr).held().end(); !strings.Contains(got, "permission denied") {
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
