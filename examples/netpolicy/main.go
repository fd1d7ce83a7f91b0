// Netpolicy shows what real clients make of a network policy: curl, wget, git over
// https and ssh, ssh, scp, npm, pip, go, node, python. Each runs in a sandbox that allows
// one host, against servers which this program starts itself on loopback; what it
// asks of that host must work, and what it asks of another must fail.
//
//	go run ./examples/netpolicy            by way of the proxies
//	go run ./examples/netpolicy -capture   by way of packet capture (needs /dev/net/tun)
//
// It exits with 1 if anything came out otherwise. A client that is not installed
// is left out, and said so. It needs no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The hosts: both are this program's server, and the policy allows one of them.
const (
	good = "good.example"
	evil = "evil.example"
)

func main() {
	captured := flag.Bool("capture", false, "capture packets, for programs that use no proxy")
	flag.Parse()
	failed, err := run(*captured)
	if err != nil {
		fmt.Fprintln(os.Stderr, "netpolicy:", err)
		os.Exit(1)
	}
	fmt.Printf("%d failed\n", failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func run(captured bool) (failed int, err error) {
	dir, err := os.MkdirTemp("", "netpolicy-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	site, err := newSite(dir)
	if err != nil {
		return 0, err
	}
	defer site.close()
	s, err := sandbox.New(policyFor(dir+"/work", site, captured))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	d := desk{sandbox: s, site: site, dir: dir + "/work", captured: captured}
	for _, c := range clients {
		if err := d.try(c); err != nil {
			return d.failed, err
		}
	}
	fmt.Printf("\nThe report of the last command:\n%v\n", d.last)
	return d.failed, nil
}

// policyFor allows one host by name. Its name stands for this machine's loopback,
// which no name reaches unless a rule names the address too.
func policyFor(dir string, site *site, captured bool) sandbox.Policy {
	p := sandbox.WorkspaceNet(dir, good, site.https, site.ssh)
	p.Network.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	p.Network.Authorities = site.authority
	p.Network.SSH = true
	p.Network.Credentials = []policy.Credential{{Name: "API_TOKEN", Secret: secret, Hosts: []string{net.JoinHostPort(good, port(site.https))}, Place: policy.PlaceBearer}}
	p.Limits.WallClock = 2 * time.Minute
	if captured {
		p.Network.Capture = capture.Netstack
		p.Network.UDP = []string{net.JoinHostPort(good, port(site.udp)), site.udp}
	}
	return p
}

// A desk runs clients and keeps the score.
type desk struct {
	sandbox  *sandbox.Sandbox
	site     *site
	dir      string
	captured bool
	last     *sandbox.Report
	failed   int
}

// try runs one client against both hosts.
func (d *desk) try(c client) error {
	if why := c.missing(d.captured); why != "" {
		fmt.Printf("left out  %-14s %s\n", c.name, why)
		return nil
	}
	for _, host := range []string{good, evil} {
		out, err := d.run(c, host)
		if err != nil && !isExit(err) {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		allowed := host == good
		ok := (err == nil && strings.Contains(out, c.says)) == allowed
		verdict := "ok    "
		if !ok {
			verdict = "FAILED"
			d.failed++
		}
		fmt.Printf("%s    %-14s %-13s %s\n", verdict, c.name, host, outcome(allowed, out))
		if !ok {
			fmt.Printf("%s\n%v\n", out, err)
		}
	}
	return nil
}

func (d *desk) run(c client, host string) (string, error) {
	dir, err := os.MkdirTemp(d.dir, "try-")
	if err != nil {
		return "", err
	}
	cmd := d.sandbox.Command("bash", "-c", c.script)
	cmd.Dir = dir
	cmd.Args = append(cmd.Args, "client", host, port(d.site.https), port(d.site.ssh), port(d.site.udp))
	out, err := cmd.CombinedOutput()
	d.last = cmd.Report()
	return string(out), err
}

// isExit tells a tool that failed from a sandbox that did.
func isExit(err error) bool {
	_, ok := err.(*exec.ExitError)
	return ok
}

// outcome is one line of what a client said.
func outcome(allowed bool, out string) string {
	if allowed {
		return "works"
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	line := lines[len(lines)-1]
	for _, l := range lines { // the proxy's own words, where the client shows them
		if strings.Contains(l, "sandbox") {
			line = l
			break
		}
	}
	return "refused: " + line[:min(len(line), 110)]
}
