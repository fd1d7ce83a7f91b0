package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// eachUser runs a body in a child for each user, with every mechanism.
func eachUser(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, body)
	})
}

func portOf(t *testing.T, address string) uint16 {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(must(strconv.Atoi(port)))
}

func TestKernelNetworkShowsPortsOfTheHarness(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		granted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "granted") }))
		defer granted.Close()
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "not granted") }))
		defer other.Close()
		for name, hosts := range map[string][]string{"alone": nil, "beside hosts": {"allowed.example"}} {
			s := networkSandbox(t, allSets[0], func(p *Policy) {
				p.Network = Network{Loopback: []uint16{portOf(t, granted.Listener.Addr().String())}, Hosts: hosts}
			})
			out, r := says(t, s, "fetch", granted.URL, other.URL)
			lines := strings.Split(out, "\n")
			if lines[0] != "200 granted" || !strings.HasPrefix(lines[1], "error: ") {
				t.Errorf("%s: %q\n%s", name, out, r)
			}
			if !strings.Contains(r.String(), "loopback at 127.0.0.1:") {
				t.Errorf("%s: %s", name, r)
			}
		}
	})
}

// The tool that answers at ports of its loopback until its input ends.
var _ = offer(programs, "answer", func(args []string) {
	for _, port := range args {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Println(err)
			return
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "from inside ", port) }))
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
})

func TestKernelNetworkReachesServersInside(t *testing.T) {
	eachWall(t, listenWalls, func(t *testing.T, w walls) {
		port, other := portForTool(t), portForTool(t)
		for other == port {
			other = portForTool(t)
		}
		s := networkSandbox(t, w, func(p *Policy) { p.Network.Listen = []uint16{port} })
		c := hostile(t, s, "answer", fmt.Sprint(port), fmt.Sprint(other))
		if _, err := c.DialInside(t.Context(), port); err == nil {
			t.Error("dialled before Start")
		}
		in, out := must(c.StdinPipe()), must(c.StdoutPipe())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var line [5]byte
		if _, err := io.ReadFull(out, line[:]); err != nil || string(line[:]) != "ready" {
			t.Fatalf("%q, %v", line, err)
		}
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return c.DialInside(ctx, portOf(t, address))
		}}}
		for range 20 {
			r, err := client.Get(fmt.Sprintf("http://inside:%d/", port))
			if err != nil {
				t.Fatalf("%v\n%s", err, c.Report())
			}
			body, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if string(body) != fmt.Sprint("from inside ", port) {
				t.Errorf("got %q", body)
			}
			client.CloseIdleConnections()
		}
		if _, err := c.DialInside(t.Context(), other); err == nil || !strings.Contains(err.Error(), "Network.Listen") {
			t.Errorf("a port that is not named: %v", err)
		}
		conn, err := c.DialInside(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection has outlived the run")
		}
		conn.Close()
		if _, err := c.DialInside(t.Context(), port); err == nil {
			t.Error("dialled after the end")
		}
	})
}

// The tool that answers at one address until its input ends.
var _ = offer(programs, "answer at", func(args []string) {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here") }))
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
})

// TestKernelNetworkReachesServersOfEitherFamily: what listens at "localhost" is, for
// Node, at ::1 alone.
func TestKernelNetworkReachesServersOfEitherFamily(t *testing.T) {
	eachWall(t, listenWalls, func(t *testing.T, w walls) {
		port := portForTool(t)
		s := networkSandbox(t, w, func(p *Policy) { p.Network.Listen = []uint16{port} })
		for _, at := range []string{"127.0.0.1", "[::1]", "0.0.0.0", "[::]"} {
			c := hostile(t, s, "answer at", fmt.Sprint(at, ":", port))
			in, out := must(c.StdinPipe()), must(c.StdoutPipe())
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var line [5]byte
			io.ReadFull(out, line[:])
			conn, err := c.DialInside(t.Context(), port)
			if err != nil {
				t.Errorf("%s (%q): %v", at, line, err)
			} else {
				conn.Close()
			}
			in.Close()
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		}
		c := hostile(t, s, "answer at", "127.0.0.1:0")
		in, out := must(c.StdinPipe()), must(c.StdoutPipe())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, 5))
		if _, err := c.DialInside(t.Context(), port); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), fmt.Sprint("127.0.0.1:", port)) {
			t.Errorf("none listens: %v", err)
		}
		in.Close()
		c.Wait()
	})
}

// The tool that says which sockets answer.
var _ = offer(programs, "unixes", func(args []string) {
	for _, path := range args {
		fmt.Println(hear("unix", path))
	}
})

func TestKernelNetworkShowsSocketsByGrant(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		dir := must(os.MkdirTemp("", "s")) // short: an address holds 107 bytes
		defer os.RemoveAll(dir)
		granted, other := filepath.Join(dir, "granted"), filepath.Join(dir, "other")
		serveEcho(t, listenAt(t, granted))
		serveEcho(t, listenAt(t, other))
		link := filepath.Join(dir, "link")
		if err := os.Symlink(granted, link); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(p *Policy){
			"by its path": func(p *Policy) { p.Network.Unix = []string{granted} },
			"by a link":   func(p *Policy) { p.Network.Unix = []string{link} },
			"by its path in a layout": func(p *Policy) {
				f := p.Files
				p.Files, p.Root = Files{Protect: f.Protect}, new(rootfs.Layout)
				for _, d := range f.Read {
					p.Root.Entries = append(p.Root.Entries, rootfs.Bind{Source: d, At: d})
				}
				p.Network.Unix = []string{granted}
			},
			"with a shared network": func(p *Policy) { p.Network = Network{Host: true, Unix: []string{granted}} },
		} {
			s := networkSandbox(t, allSets[0], change)
			out, r := says(t, s, "unixes", granted, other)
			if lines := strings.Split(out, "\n"); lines[0] != "<nil>" || !strings.Contains(lines[1], "no such file") {
				t.Errorf("%s: %q\n%s", name, out, r)
			}
		}
		s := networkSandbox(t, allSets[0], func(p *Policy) { p.Network.Unix, p.Files.Read = []string{granted}, append(p.Files.Read, dir) })
		if out, r := says(t, s, "unixes", granted); out != "<nil>\n" {
			t.Errorf("in a directory that is shown: %q\n%s", out, r)
		}
		for name, path := range map[string]string{"a file": "/etc/passwd", "nothing": filepath.Join(dir, "absent")} {
			p := attackPolicy(t, "", allSets[0])
			p.Network.Unix = []string{path}
			_, err := New(p)
			var wrong *PolicyError
			if !errors.As(err, &wrong) || wrong.Field != "Network.Unix[0]" {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestKernelNetworkLetsTheSSHAgentSign(t *testing.T) {
	kerneltest.Long(t)
	for _, name := range []string{"ssh-agent", "ssh-add", "ssh-keygen"} {
		kerneltest.Need(t, kerneltest.Command(name))
	}
	eachUser(t, func(t *testing.T) {
		dir := must(os.MkdirTemp("", "s"))
		defer os.RemoveAll(dir)
		socket := filepath.Join(dir, "agent")
		server := exec.Command("ssh-agent", "-D", "-a", socket)
		out := must(server.StdoutPipe())
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer server.Wait()
		defer server.Process.Kill()
		out.Read(make([]byte, 1)) // it says where it listens once it does
		t.Setenv("SSH_AUTH_SOCK", socket)
		run := func(name string, args ...string) {
			t.Helper()
			if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
		key := filepath.Join(dir, "key")
		run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a test's", "-f", key)
		run("ssh-add", "-q", key)
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		run("cp", key+".pub", work)
		s := networkSandbox(t, allSets[0], func(p *Policy) { p.Network.SSHAgent, p.Files.Write = true, []string{work} })
		c := s.Command("/bin/sh", "-c", `ssh-add -l; echo text >file; ssh-keygen -q -Y sign -n test -f key.pub file 2>&1 && ls file.sig
			ssh-add -D 2>&1 && echo REMOVED; ssh-add -x </dev/null 2>&1 && echo LOCKED; ls /run/holdfast; true`)
		c.Dir = work
		said, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "a test's") || !strings.Contains(string(said), "file.sig") ||
			strings.Contains(string(said), "REMOVED") || strings.Contains(string(said), "LOCKED") {
			t.Errorf("%v\n%s\n%s", err, said, c.Report())
		}
		if r := c.Report(); len(r.Violations) == 0 || r.Violations[0].Protocol != "ssh-agent" {
			t.Errorf("%s", r)
		}
		run("ssh-add", "-l") // it is still there
		t.Setenv("SSH_AUTH_SOCK", filepath.Join(dir, "absent"))
		p := attackPolicy(t, "", allSets[0])
		p.Network.SSHAgent = true
		_, err = New(p)
		var wrong *PolicyError
		if !errors.As(err, &wrong) || wrong.Field != "Network.SSHAgent" {
			t.Errorf("without an agent: %v", err)
		}
	})
}
