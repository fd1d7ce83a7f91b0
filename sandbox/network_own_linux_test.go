package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The tool with a server of its own at a port of every address, which asks its proxies for it as "spell" does.
var _ = offer(programs, "ownserver", func(args []string) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, ":"+args[0])
		if err != nil {
			fmt.Println(err)
			return
		}
		go http.Serve(l, mark("inside"))
	}
	name, _ := os.Hostname()
	for _, a := range args[1:] {
		way, target, _ := strings.Cut(strings.ReplaceAll(a, "HOSTNAME", name), " ")
		fmt.Printf("%s\n", spell(way, target))
	}
})

// TestKernelTheToolsOwnServersAreReachedByTheProxy under every name of its loopback, with and without allowed hosts, while the
// harness has servers at the same port; an entry that names an address of the harness's keeps its meaning. Without a
// network namespace the loopback is the harness's, and refused.
func TestKernelTheToolsOwnServersAreReachedByTheProxy(t *testing.T) {
	kerneltest.Long(t)
	var mu sync.Mutex
	var rules []string
	for name, change := range map[string]func(p *Policy){
		"explained": explains,
		"hosts": func(p *Policy) {
			p.Network.Hosts = []string{"allowed.example", "*"}
			p.Network.Observe = func(c policy.Connection) {
				mu.Lock()
				defer mu.Unlock()
				rules = append(rules, fmt.Sprint(c.Host, c.Allowed, c.Rule))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inNetwork(t, change, func(t *testing.T, s *Sandbox, w walls) {
				harness := marked(t, "127.0.0.1:0", "harness")
				if l, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", harness)); err == nil {
					t.Cleanup(func() { l.Close() })
					go http.Serve(l, mark("harness"))
				}
				if name == "hosts" {
					s = networkSandbox(t, w, func(p *Policy) {
						change(p)
						p.Network.Hosts = append(p.Network.Hosts, fmt.Sprintf("127.3.0.1:%d", harness), "rebound.example")
					})
				}
				s.ready.Networks.Outside.Dial, s.ready.Networks.Outside.Lookup = nil, func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				}
				hosts := []string{"127.0.0.1", "127.0.0.2", "127.255.0.1", "127.1", "0", "0x7f.1", "2130706433", "0177.0.0.1", "127.0.0.01", "0.0.0.0", "[::]", "[::1]", "[::1%25lo]", "[::ffff:127.0.0.1]", "[::ffff:7f00:2]", "[::ffff:0:0]",
					"localhost", "LocalHost.", "a.b.localhost", "localhost.localdomain", "ip6-localhost", "HOSTNAME", "127.0.0.1."}
				var args, want []string
				try := func(answer, host string) {
					args, want = append(args, "absolute "+host, "connect "+host), append(want, answer, answer)
				}
				at := func(host string) string { return host + ":" + strconv.Itoa(harness) }
				for _, host := range hosts {
					try("inside", at(host))
				}
				try("nothing", at("rebound.example")) // whose address is the harness's loopback, to a resolver outside
				try("nothing", "127.0.0.1:3128")      // the proxy: no loop
				try("nothing", "0:3128")
				try("nothing", at("[::127.0.0.1]"))
				if name == "hosts" {
					machine, _ := os.Hostname()
					for _, host := range []string{"127.0.0.2", "localhost", machine, "0"} {
						args, want = append(args, ofSOCKS(3, named(host), harness)), append(want, "inside")
					}
					mapped := netip.MustParseAddr("::ffff:127.0.0.9").As16()
					args, want = append(args, ofSOCKS(4, mapped[:], harness), ofSOCKS(1, []byte{127, 0, 0, 1}, 1080)), append(want, "inside", "nothing")
				}
				inside := s.ready.Plan.Namespaces.Net
				if !inside && name == "explained" {
					return // there is no proxy
				}
				out, r := says(t, s, append([]string{"ownserver", strconv.Itoa(harness)}, args...)...)
				got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
				if len(got) != len(want) && inside {
					t.Fatalf("%d answers to %d questions\n%s", len(got), len(want), out)
				}
				for i := range got {
					if inside && got[i] != want[i] || !inside && (got[i] == "harness" || got[i] == "inside") {
						t.Errorf("%q: %s, want %s", args[i], got[i], want[i])
					}
				}
				for _, v := range r.Violations {
					if strings.Contains(v.Why, "only an entry for that address") && !strings.Contains(v.Host, "rebound") && inside && !strings.HasPrefix(v.Host, "::") {
						t.Errorf("the harness's loopback is offered: %v", v)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if told := strings.Join(rules, "\n"); inside && name == "hosts" && !strings.Contains(told, "127.0.0.2true"+"inside: ") {
					t.Errorf("no event says inside:\n%s", told)
				}
			})
		})
	}
}

// TestKernelAnEntryForTheHarnesssLoopbackKeepsItsMeaning beside a server of the tool's at the same address and port.
func TestKernelAnEntryForTheHarnesssLoopbackKeepsItsMeaning(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, explains, func(t *testing.T, s *Sandbox, w walls) {
		if !s.ready.Plan.Namespaces.Net {
			return
		}
		harness := marked(t, "127.0.0.1:0", "harness")
		s = networkSandbox(t, w, func(p *Policy) { p.Network.Hosts = []string{fmt.Sprintf("127.0.0.1:%d", harness)} })
		s.ready.Networks.Outside.Dial = nil
		at := func(host string) string { return "connect " + host + ":" + strconv.Itoa(harness) }
		out, r := says(t, s, "ownserver", strconv.Itoa(harness), at("127.0.0.1"), at("127.1"), at("localhost"), at("127.0.0.2"))
		if out != "harness\nharness\ninside\ninside\n" {
			t.Errorf("%s%s", out, r)
		}
	})
}

// The same, which says that it listens and then waits.
var _ = offer(programs, "ownserver stays", func(args []string) {
	l, err := net.Listen("tcp", ":"+args[0])
	fmt.Println(err)
	http.Serve(l, mark("inside"))
})

// TestKernelASessionsServerIsReachedByAnotherOfItsCommands through the proxy, and another session's is not.
func TestKernelASessionsServerIsReachedByAnotherOfItsCommands(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, netWalls[:1], func(t *testing.T, w walls) {
		of := networkSandbox(t, w, explains)
		var sessions [2]*Session
		for i := range sessions {
			var err error
			if sessions[i], err = of.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer sessions[i].Close()
		}
		exe, _ := os.Executable()
		command := func(s *Session, args ...string) *Cmd {
			c := s.Command(exe)
			c.Args, c.Dir = append([]string{attackTool}, args...), "/"
			return c
		}
		server := command(sessions[0], "ownserver stays", "8099")
		out, err := server.StdoutPipe()
		if err == nil {
			err = server.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
			t.Fatal(line, err)
		}
		for i, want := range []string{"inside\n", "nothing\n"} {
			if got, err := command(sessions[i], "spell", "connect 127.0.0.2:8099").Output(); string(got) != want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		}
	})
}
