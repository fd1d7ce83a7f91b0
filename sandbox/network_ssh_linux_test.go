package sandbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// The tool that connects as ssh does: by the command in its environment.
var _ = offer(programs, "proxycommand", func(hosts []string) {
	_, command, ok := strings.Cut(os.Getenv("GIT_SSH_COMMAND"), "ProxyCommand=")
	if !ok {
		fmt.Println("no command")
		return
	}
	path, _, _ := strings.Cut(command, " ")
	for _, h := range hosts {
		c := exec.Command(path, h, "80")
		in, open, err := os.Pipe() // open until the end: a client of HTTP that hangs up wants no answer
		if err != nil {
			fmt.Println(err)
			return
		}
		c.Stdin = in
		fmt.Fprintf(open, "GET /relayed HTTP/1.0\r\nHost: %s\r\n\r\n", h)
		out, err := c.CombinedOutput()
		in.Close()
		open.Close()
		fmt.Printf("%v: %s\n", err, strings.ReplaceAll(string(out), "\n", " "))
	}
	// What is shown is the harness's program to execute and to read, not to write.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	fmt.Println("written:", err == nil, "removed:", os.Remove(path) == nil)
})

func TestKernelNetworkConnectsForSSH(t *testing.T) {
	inNetwork(t, func(p *Policy) {
		p.Network.Hosts = []string{"allowed.example:80"}
		p.Network.SSH = true
	}, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "proxycommand", "allowed.example", "denied.example")
		if !s.plan.Namespaces.Mount {
			if out != "no command\n" || !strings.Contains(r.String(), "ssh reaches nothing") {
				t.Errorf("without a place to show it: %s%s", out, r)
			}
			return
		}
		lines := strings.Split(out, "\n")
		if !strings.HasPrefix(lines[0], "<nil>: HTTP/1.0 200 OK") || !strings.Contains(lines[0], "served GET allowed.example /relayed") {
			t.Errorf("an allowed host: %s\n%s", lines[0], r)
		}
		if !strings.HasPrefix(lines[1], "exit status 1: "+egress.RelayName+": 403") || !strings.Contains(lines[1], "denied.example") {
			t.Errorf("a denied host: %s", lines[1])
		}
		if lines[2] != "written: false removed: false" {
			t.Errorf("the harness's program: %s", lines[2])
		}
	})
}

// The tool that reads the system's bundle, as wget does.
var _ = offer(programs, "systembundle", func([]string) {
	for _, name := range egress.SystemBundles {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		system, _ := io.ReadAll(f)
		own, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
		fmt.Println(err == nil && len(own) > 0 && string(own) == string(system))
		return
	}
	fmt.Println("none")
})

func TestKernelNetworkShowsItsBundleInThePlaceOfTheSystems(t *testing.T) {
	inNetwork(t, credentialed, func(t *testing.T, s *Sandbox, w walls) {
		want := "true\n"
		if s.wiring.bundle == "" {
			want = "false\n"
			if s.plan.Namespaces.Mount {
				t.Skip("this machine has no bundle where a system has one")
			}
		}
		if out, r := says(t, s, "systembundle"); out != want && out != "none\n" {
			t.Errorf("it says %q, want %q\n%s", out, want, r)
		}
	})
}
