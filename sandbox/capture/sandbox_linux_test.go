package capture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// hostAddress is the harness's in a network of the test's own, which has nothing
// else: a tool cannot mean its own loopback by it.
const hostAddress = "198.51.100.7"

func init() { kerneltest.Programs["capture-harness"] = harness }

// harness is a program that runs a shell in a sandbox whose network is captured,
// and prints what came of it.
func harness() {
	out, err := runCaptured()
	if err != nil {
		out.Err = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(out)
}

type outcome struct {
	Output, Err, Report string
	Violations          []sandbox.Violation
	Seen                []policy.Connection
}

func runCaptured() (outcome, error) {
	if err := addAddress(); err != nil {
		return outcome{}, err
	}
	l, err := net.Listen("tcp4", hostAddress+":0")
	if err != nil {
		return outcome{}, err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	u, err := net.ListenPacket("udp4", hostAddress+":0")
	if err != nil {
		return outcome{}, err
	}
	defer u.Close()
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			u.WriteTo(b[:n], from)
		}
	}()
	dir, err := os.MkdirTemp("", "captured")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	p := sandbox.Workspace(dir)
	var seen []policy.Connection
	p.Network = network(l.Addr(), u.LocalAddr().(*net.UDPAddr))
	p.Network.Observe = func(c policy.Connection) { seen = append(seen, c) }
	s, err := sandbox.New(p)
	if err != nil {
		return outcome{}, err
	}
	cmd := s.Command("bash", "-c", os.Args[1], "bash", fmt.Sprint(l.Addr().(*net.TCPAddr).Port), fmt.Sprint(u.LocalAddr().(*net.UDPAddr).Port))
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	r := cmd.Report()
	return outcome{Output: string(text), Report: r.String(), Violations: r.Violations, Seen: seen}, err
}

// network allows connections to one server and one name, and datagrams to another
// server by its address and by some names, whatever these resolve to.
func network(tcp net.Addr, udp *net.UDPAddr) sandbox.Network {
	port := fmt.Sprint(":", udp.Port)
	addrs := map[string]string{
		"granted.example": hostAddress, "api.inner.example": hostAddress,
		"metadata.inner.example": "169.254.169.254", "private.inner.example": "10.0.0.1",
	}
	return sandbox.Network{
		Hosts: []string{tcp.String(), "allowed.example", "api.inner.example", "*.wide.example"}, Deny: []string{"denied.inner.example", "secret.wide.example"},
		UDP:      []string{udp.String(), "granted.example" + port, "*.inner.example" + port},
		Requests: []policy.RequestRule{{Host: "api.inner.example:443", Methods: []string{"GET"}}},
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			a, err := netip.ParseAddr(addrs[name])
			return []netip.Addr{a}, err
		},
		Capture: capture.Netstack,
	}
}

// addAddress gives the namespace's loopback device an address that is none of
// 127.0.0.0/8.
func addAddress() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, set := range []struct {
		what uint
		name string
		with func(r *unix.Ifreq) error
	}{
		{unix.SIOCSIFFLAGS, "lo", func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
		{unix.SIOCSIFADDR, "lo:1", func(r *unix.Ifreq) error {
			a := netip.MustParseAddr(hostAddress).As4()
			return r.SetInet4Addr(a[:])
		}},
	} {
		r, err := unix.NewIfreq(set.name)
		if err == nil {
			err = set.with(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, set.what, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return nil
}

// captured runs a script in the harness, in namespaces of its own.
func captured(t *testing.T, script string) outcome {
	t.Helper()
	cmd := exec.Command(capture.Exe())
	cmd.Args = []string{"capture-harness", script}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	text, err := cmd.Output()
	var o outcome
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil || o.Err != "" {
		t.Fatalf("%v: %s: %+v", err, text, o)
	}
	return o
}

func TestKernelSandboxIsCaptured(t *testing.T) {
	capture.InSandboxWorld(t, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.Command("bash"), kerneltest.Command("getent"), kerneltest.Command("od"))
		o := captured(t, `
			try() { { exec 3<>"/dev/tcp/$1/$2"; } 2>/dev/null && echo hello >&3 && head -n 1 <&3 || echo refused; exec 3>&-; }
			unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
			echo "allowed address: $(try `+hostAddress+` $1)"
			echo "its other port: $(try `+hostAddress+` 1)"
			echo "another address: $(try 203.0.113.5 80)"
			echo "allowed name: $(getent ahostsv4 allowed.example | head -n 1 | cut -d' ' -f1)"
			ask() { exec 3<>"/dev/udp/$1/53" && printf '\001\002\000\000\000\000\000\000\000\000\000\000' >&3 && timeout 60 head -c 2 <&3 | od -An -tx1 | tr -d ' '; exec 3>&-; }
			for server in 127.0.0.1 127.0.0.53; do
				echo "$server: $(ask $server), $({ exec 3<>/dev/tcp/$server/53; } 2>/dev/null && echo listens)"
			done
			echo "denied name: $(getent ahostsv4 denied.example || echo none)"
			echo "name denied by a rule: $(getent ahostsv4 secret.wide.example || echo none)"
		`)
		for _, want := range []string{"allowed address: hello", "its other port: refused", "another address: refused", "allowed name: 198.18.0.2", "denied name: none", "name denied by a rule: none", "127.0.0.1: 0102, listens", "127.0.0.53: 0102, listens"} {
			if !strings.Contains(o.Output, want+"\n") {
				t.Errorf("no %q in %s", want, o.Output)
			}
		}
		if !strings.Contains(o.Report, "capture") {
			t.Errorf("the report knows nothing of it: %s", o.Report)
		}
		denied := ""
		for _, v := range o.Violations {
			denied += v.String() + "\n"
		}
		for _, want := range []string{`dns denied.example: no rule allows it (to allow it: add "denied.example"`, `dns secret.wide.example: the entry "secret.wide.example" of the deny-list names it (rule "secret.wide.example"; to allow it: remove "secret.wide.example" from Network.Deny)`, "tcp 203.0.113.5:80", "tcp " + hostAddress + ":1"} {
			if strings.Count(denied, want) != 1 {
				t.Errorf("%q is not once in %s", want, denied)
			}
		}
	})
}

func TestKernelSandboxCarriesGrantedDatagramsAlone(t *testing.T) {
	capture.InSandboxWorld(t, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.Command("bash"), kerneltest.Command("timeout"), kerneltest.Command("head"))
		o := captured(t, `
			say() { { exec 3<>"/dev/udp/$1/$2"; } 2>/dev/null || { echo no such name; return; }
				for i in 1 2 3; do printf hello >&3 2>/dev/null || break; timeout 20 head -c 5 <&3 2>/dev/null && break; done || true; exec 3>&-; echo; }
			echo "address: $(say `+hostAddress+` $2)"
			echo "name: $(say granted.example $2)"
			echo "other port: $(say granted.example 444)"
			echo "where TCP is allowed: $(say `+hostAddress+` $1)"
			for name in denied metadata private; do echo "$name: $(say $name.inner.example $2)"; done
			echo "literal metadata: $(say 169.254.169.254 $2)"
			echo "judged port: $(say api.inner.example 443)"
		`)
		for _, want := range []string{"address: hello", "name: hello", "other port: ", "where TCP is allowed: ", "denied: no such name", "metadata: ", "private: ", "literal metadata: ", "judged port: "} {
			if !strings.Contains(o.Output, want+"\n") {
				t.Errorf("no %q in %s", want, o.Output)
			}
		}
		carried := 0
		for _, c := range o.Seen {
			if c.Protocol == "udp" && c.Allowed {
				carried++
				if c.Sent != 5 || c.Received != 5 || c.Rule == "" || !strings.HasPrefix(c.Address, hostAddress+":") {
					t.Errorf("%+v", c)
				}
			}
		}
		if carried != 2 {
			t.Errorf("%d flows: %+v", carried, o.Seen)
		}
		denied := ""
		for _, v := range o.Violations {
			denied += v.String() + "\n"
		}
		for what, why := range map[string]string{
			"udp granted.example:444: ": "to Network.UDP", "udp " + hostAddress: "to Network.UDP", "dns denied.inner.example": "",
			"udp metadata.inner.example:": "metadata service", "udp private.inner.example:": "is private", "udp 169.254.169.254:": "metadata service",
			"udp api.inner.example:443: ": "use TCP",
		} {
			found := false
			for line := range strings.Lines(denied) {
				found = found || strings.HasPrefix(line, what) && strings.Contains(line, why)
			}
			if !found {
				t.Errorf("no %q with %q in %s", what, why, denied)
			}
		}
	})
}
