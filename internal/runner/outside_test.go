package runner

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// directNetwork is a run's network as it is on macOS, as far as that is no matter of a kernel.
func directNetwork(t *testing.T, n policy.Network) *Network {
	t.Helper()
	of, err := NewNetworks(&n)
	if err != nil {
		t.Fatal(err)
	}
	o, err := of.New(darwin.NetConfig(n), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// ask sends a request to a proxy and returns the status.
func ask(t *testing.T, at netip.AddrPort, key string) int {
	t.Helper()
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, _ := http.NewRequest(http.MethodConnect, "http://example.com:443", nil)
	if key != "" {
		r.SetBasicAuth("holdfast", key)
		r.Header["Proxy-Authorization"] = r.Header["Authorization"]
	}
	if err := r.WriteProxy(c); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// TestProxiesOnTheMachinesLoopbackAskForTheKey: at both loopbacks, since a profile
// cannot tell them apart.
func TestProxiesOnTheMachinesLoopbackAskForTheKey(t *testing.T) {
	o := directNetwork(t, policy.Network{Hosts: []string{"example.org"}})
	o.serveOutside()
	at := []netip.AddrPort{o.http}
	if o.twins[0] != nil {
		at = append(at, netip.AddrPortFrom(netip.IPv6Loopback(), o.http.Port()))
	}
	for _, at := range at {
		if got := ask(t, at, ""); got != http.StatusProxyAuthRequired {
			t.Errorf("%s without a key: %d", at, got)
		}
		if got := ask(t, at, o.key); got != http.StatusForbidden {
			t.Errorf("%s with the key, for a host that is not named: %d", at, got)
		}
	}
	if got := o.Ports(); len(got) != 2 || got[0] != int(o.http.Port()) || got[1] != int(o.socks.Port()) {
		t.Errorf("the profile is told of %v", got)
	}
	env := strings.Join(o.Variables(""), "\n")
	if !strings.Contains(env, fmt.Sprintf("HTTPS_PROXY=http://holdfast:%s@%s", o.key, o.http)) {
		t.Errorf("no tool would find the proxy:\n%s", env)
	}
	if said, _ := o.Served(); !strings.Contains(said, "HTTP at 127.0.0.1:") || !strings.Contains(said, "denied") || strings.Contains(said, o.key) {
		t.Errorf("the report says %q", said)
	}
	o.Close()
	if c, err := net.Dial("tcp", o.http.String()); err == nil {
		c.Close()
		t.Error("the proxy outlives its run")
	}
}

// TestAPortThatSomebodyHasOfIPv6IsNoProxys: the tool would reach them there.
func TestAPortThatSomebodyHasOfIPv6IsNoProxys(t *testing.T) {
	o := directNetwork(t, policy.Network{Hosts: []string{"example.org"}})
	if o.twins[0] == nil {
		t.Skip("this host has no IPv6")
	}
	other := &Network{wiring: o.wiring, outside: o.outside}
	if err := other.listenTwins(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v", err)
	}
}

// TestTheAgentsSocketIsInTheRunsOwnDirectory: nobody else may connect, and it
// ends with the run.
func TestTheAgentsSocketIsInTheRunsOwnDirectory(t *testing.T) {
	o := directNetwork(t, policy.Network{SSHAgent: true})
	dir := t.TempDir()
	if err := o.ListenAgent(dir, os.Geteuid(), os.Getegid()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, compile.SshFile)
	if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if env := strings.Join(o.Variables(dir), "\n"); env != "SSH_AUTH_SOCK="+at {
		t.Errorf("%q", env)
	}
	o.Close()
	if c, err := net.Dial("unix", at); err == nil {
		c.Close()
		t.Error("it outlives the run")
	}
	if err := o.ListenAgent(filepath.Join(dir, strings.Repeat("x", 120)), os.Geteuid(), os.Getegid()); err == nil {
		t.Error("a path that no socket can have is taken")
	}
}
