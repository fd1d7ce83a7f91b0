// Webfetch is an agent's tool for fetching pages: curl in a sandbox that may reach
// the hosts it was given and no other, with a token that curl never sees.
//
//	go run ./examples/webfetch -allow example.com https://example.com/
//	TOKEN=... go run ./examples/webfetch -allow api.example.com -bearer TOKEN https://api.example.com/me
//	go run ./examples/webfetch
//
// With -ask, hosts that are not allowed are asked about at the terminal. Without
// an address it shows itself: it starts a server of its own on loopback, fetches
// from it with a token, and tries to get at the token and at another host. Then it
// exits with 1 if anything came out otherwise than it should.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func main() {
	var allow list
	flag.Var(&allow, "allow", "a host that may be reached, as in sandbox.Network.Hosts; may be repeated")
	bearer := flag.String("bearer", "", "the name of a variable whose value is sent as a bearer token to the allowed hosts")
	ask := flag.Bool("ask", false, "ask at the terminal about other hosts")
	flag.Parse()
	if flag.NArg() == 0 && flag.NFlag() > 0 {
		fmt.Fprintln(os.Stderr, "webfetch: no address was named after the flags")
		os.Exit(1)
	}
	if err := run(flag.Arg(0), allow, *bearer, *ask); err != nil {
		fmt.Fprintln(os.Stderr, "webfetch:", err)
		os.Exit(1)
	}
}

func run(url string, allow []string, bearer string, ask bool) error {
	dir, err := os.MkdirTemp("", "webfetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if url == "" {
		return show(dir)
	}
	return fetch(dir, url, policyFor(dir, allow, bearer, ask))
}

// A list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

// Set adds one more.
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// policyFor lets a program read the system's files and an empty directory, write
// nothing that stays, and reach the hosts.
func policyFor(dir string, hosts []string, bearer string, ask bool) sandbox.Policy {
	p := sandbox.ReadOnly(dir)
	p.Network.Hosts = hosts
	p.Limits.WallClock = time.Minute
	if bearer != "" {
		p.Network.Credentials = []policy.Credential{{Name: bearer, Secret: os.Getenv(bearer), Hosts: hosts, Place: policy.PlaceBearer}}
	}
	if ask {
		p.Network.Decide = newPerson(os.Stdin, os.Stderr).decide
	}
	p.Network.Observe = func(c policy.Connection) {
		verdict := "denied"
		if c.Allowed {
			verdict = "allowed"
		}
		fmt.Fprintf(os.Stderr, "webfetch: %s %s %s:%d %s\n", verdict, c.Protocol, c.Host, c.Port, c.Reason+c.Err)
	}
	return p
}

// fetch prints the page.
func fetch(dir, url string, p sandbox.Policy) error {
	out, report, err := curl(dir, p, `curl -sSL --fail-with-body -- "$1"`, url)
	fmt.Print(out)
	if err != nil && report != nil {
		return fmt.Errorf("%w\n%v", err, report)
	}
	return err
}

// curl runs a shell's line in the policy's sandbox.
func curl(dir string, p sandbox.Policy, script string, args ...string) (string, *sandbox.Report, error) {
	s, err := sandbox.New(p)
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	cmd := s.Command("sh", append([]string{"-c", script, "webfetch"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), cmd.Report(), err
}
