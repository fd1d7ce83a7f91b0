package commandtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// networkPolicy is toolPolicy with everything of a network that a run can leave
// something of: connections through the proxy and by a grant, an agent, TLS, a
// server inside, somebody who is asked and somebody who observes.
func networkPolicy(dir string, port uint16) sandbox.Policy {
	p := toolPolicy(dir)
	p.Network = sandbox.Network{
		Hosts:    []string{fmt.Sprintf("127.0.0.1:%d", port), "example.com:443"},
		Loopback: []uint16{port},
		Listen:   []uint16{8000},
		Requests: []policy.RequestRule{{Host: "example.com:443", Methods: []string{"GET"}}},
		Observe:  func(policy.Connection) {},
		Decide: func(ctx context.Context, _ policy.Request) policy.Verdict {
			<-ctx.Done()
			return policy.Verdict{}
		},
	}
	return p
}

// holding is a tool that has connections open, and one that waits for Decide, and
// then does what $1 says.
var holding = `exec 7<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' $PORT $PORT >&7
read -r -u 7 line; case "$line" in *200*) ;; *) echo "$line"; exit 9;; esac
exec 8<>/dev/tcp/127.0.0.1/$PORT; echo hello >&8; read -r -u 8 line
exec 9<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT undecided.example:80 HTTP/1.1\r\nHost: undecided.example:80\r\n\r\n' >&9
(exec -a ` + residue + ` sleep 1000) &
echo ready; eval "$1"`

// echo answers every line, and holds the connection until the other end closes it.
func echo(t *testing.T) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func TestKernelNothingIsLeftOfANetwork(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir, port := openDir(t), echo(t)
			p := networkPolicy(dir, port)
			s, err := sandbox.New(p)
			if err != nil {
				t.Fatal(err)
			}
			warm(t, s)
			for way, run := range ways {
				for _, c := range []struct {
					name  string
					limit time.Duration
					then  string
					act   func(c *sandbox.Cmd, cancel func())
					ends  func(err error) bool
				}{
					{"a tool that ends", 0, "exit 0", nil, func(err error) bool { return err == nil }},
					{"a tool that kills itself", 0, "kill -KILL $$", nil, killed},
					{"a command that is cancelled", 0, "wait", func(_ *sandbox.Cmd, cancel func()) { cancel() }, killed},
					{"a process that is killed", 0, "wait", func(c *sandbox.Cmd, _ func()) { c.Process.Kill() }, killed},
					{"a run that is too long", 300 * time.Millisecond, "wait", nil, killed},
				} {
					t.Run(c.name+", by "+way, func(t *testing.T) {
						defer killMarked(t, residue)
						before := takeInventory(t)
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						var cmd *sandbox.Cmd
						once := func(s *sandbox.Sandbox) (ready bool, err error) {
							cmd = s.CommandContext(ctx, "/bin/bash", "-c", holding, "bash", c.then)
							cmd.Env = append(cmd.Environ(), fmt.Sprintf("PORT=%d", port))
							cmd.Stderr = os.Stderr
							err = run(cmd, func() {
								ready = true
								if c.act != nil {
									c.act(cmd, cancel)
								}
							})
							return ready, err
						}
						ready, err := false, error(nil)
						if c.limit == 0 {
							ready, err = once(s)
						}
						for limit := c.limit; limit > 0 && limit < 2*time.Minute && !ready; limit *= 4 { // on a slow machine
							limited := p
							limited.Limits.WallClock = limit
							short, failed := sandbox.New(limited)
							if failed != nil {
								t.Fatal(failed)
							}
							ready, err = once(short)
						}
						if !c.ends(err) || !ready {
							t.Errorf("ready %t, Wait: %v\n%s", ready, err, cmd.Report())
						}
						if left := leftOver(t, before); left != "" {
							t.Errorf("left open: %s", left)
						}
					})
				}
			}
			t.Run("starts that fail", func(t *testing.T) {
				before := takeInventory(t)
				broken := filepath.Join(dir, "broken")
				if err := os.WriteFile(broken, nil, 0o755); err != nil {
					t.Fatal(err)
				}
				for range 10 {
					for _, name := range []string{"/nonexistent", broken, "/usr"} {
						c := s.Command(name)
						c.NetworkEnviron()
						if err := c.Run(); err == nil {
							t.Errorf("%s ran", name)
						}
						if err := s.Command(name).Cmd.Run(); err == nil {
							t.Errorf("%s ran by the embedded Cmd", name)
						}
					}
					s.Command("/bin/true").Environ() // and is never started
				}
				if left := leftOver(t, before); left != "" {
					t.Errorf("left open: %s", left)
				}
			})
		})
	})
}

// networkHarness is a harness with a network that waits for its tool.
const networkHarness = "holdfast-test-network-harness"

func init() {
	kerneltest.Programs[networkHarness] = func() {
		var port uint16
		fmt.Sscan(os.Args[2], &port)
		p := networkPolicy(os.Args[1], port)
		p.May = []sandbox.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}
		s, err := sandbox.New(p)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		script := holding
		if len(os.Args) > 3 { // no proxy at a fixed port
			script = `(exec -a ` + residue + ` sleep 1000) & test -s "$SSL_CERT_FILE" && echo ready; wait`
		}
		c := s.Command("/bin/bash", "-c", script, "bash", "wait")
		c.Env = append(c.Environ(), fmt.Sprintf("PORT=%d", port))
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// TestKernelNetworkEndsWithItsHarness: of one that is killed neither processes are
// left, nor connections, nor what a run has on the disk.
func TestKernelNetworkEndsWithItsHarness(t *testing.T) {
	kerneltest.Long(t)
	for name, without := range map[string][]kerneltest.Feature{"with namespaces": nil, "without namespaces": {kerneltest.Namespaces}} {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.LandlockABI(1))
					defer killMarked(t, residue)
					dir, temp := openDir(t), t.TempDir()
					exe, err := os.Executable()
					if err != nil {
						t.Fatal(err)
					}
					c := exec.Command(exe, dir, fmt.Sprint(echo(t)))
					if without != nil {
						c.Args = append(c.Args, "bare")
					}
					c.Args[0] = networkHarness
					c.Env = append(os.Environ(), "TMPDIR="+temp)
					out, err := c.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					c.Stderr = os.Stderr
					if err := c.Start(); err != nil {
						t.Fatal(err)
					}
					if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" || err != nil {
						t.Errorf("%q, %v", line, err)
					}
					c.Process.Kill()
					c.Wait()
					gone := func() bool {
						left, err := filepath.Glob(temp + "/*")
						return err == nil && len(left) == 0 && len(marked(t, residue)) == 0
					}
					if !eventually(gone) {
						left, _ := filepath.Glob(temp + "/*/*")
						t.Errorf("left after the harness: %v, %v", marked(t, residue), left)
					}
				})
			})
		})
	}
}
