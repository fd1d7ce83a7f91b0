package sandbox

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelAnOwnEnvIsFiltered: append(os.Environ(), ...) gives the tool what a nil Env gives it
// and the rest, however the command is started.
func TestKernelAnOwnEnvIsFiltered(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		for name, value := range map[string]string{"AWS_SECRET_ACCESS_KEY": "abc", "PLAIN": "text", "HOME": "/home/other", "TMPDIR": os.TempDir(), "PATH": "/opt/other:/usr/bin:/bin"} {
			t.Setenv(name, value)
		}
		p := attackPolicy(t, "", w)
		p.Files.Read = append(p.Files.Read, "/usr/bin/env")
		p.Env = Env{Pass: []string{"*"}, Set: map[string]string{"HOME": "/tmp", "TMPDIR": "/tmp", "PATH": "/usr/bin:/bin"}}
		filtered := attackSandbox(t, p, w)
		p.Env.AsGiven = true
		given := attackSandbox(t, p, w)
		p.Env.AsGiven = false
		p.Network.Hosts = []string{"example.com:443"}
		p.Network.Credentials = []policy.Credential{{Name: "MY_TOKEN", Secret: "real-words-of-a-secret", Hosts: p.Network.Hosts, Place: policy.PlaceBearer}}
		bound := attackSandbox(t, p, w)
		for _, c := range []struct {
			name    string
			s       *Sandbox
			env     []string
			has     []string
			hasNot  []string
			state   State
			says    string
			isGiven bool
		}{
			{"the harness's and one more", filtered, append(os.Environ(), "X=1"), []string{"X=1", "PLAIN=text", "PATH=/usr/bin:/bin"}, []string{"AWS_SECRET_ACCESS_KEY=abc", "HOME=/home/other", "TMPDIR=" + os.TempDir()}, Held, " variables withheld", false},
			{"set on purpose", filtered, append(os.Environ(), "TMPDIR=/", "HOME=/home/me", "PATH=/bin"), []string{"TMPDIR=/", "HOME=/home/me", "PATH=/bin"}, []string{"AWS_SECRET_ACCESS_KEY=abc"}, Held, " variables withheld", false},
			{"a secret of the caller's", filtered, append(os.Environ(), "OPENAI_API_KEY=x", "GIT_PAGER=cat"), []string{"OPENAI_API_KEY=x", "GIT_PAGER=cat"}, []string{"AWS_SECRET_ACCESS_KEY=abc"}, Weaker, "what looks like a secret: OPENAI_API_KEY (", false},
			{"a credential's secret", bound, append(os.Environ(), "MINE=see real-words-of-a-secret"), []string{"MINE=see real-words-of-a-secret"}, []string{"AWS_SECRET_ACCESS_KEY=abc"}, Weaker, "what looks like a secret: MINE (", false},
			{"as it is given", given, append(os.Environ(), "X=1"), []string{"X=1", "AWS_SECRET_ACCESS_KEY=abc", "HOME=/home/other", "PATH=/opt/other:/usr/bin:/bin"}, []string{"TMPDIR=/tmp"}, Weaker, "AWS_SECRET_ACCESS_KEY", true},
		} {
			for how, run := range map[string]func() (string, *Report){
				"Command": func() (string, *Report) {
					cmd := c.s.Command("/usr/bin/env")
					cmd.Env, cmd.Dir = c.env, "/"
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Errorf("%s: %v: %s", c.name, err, out)
					}
					if !slices.Equal(cmd.Env, c.env) {
						t.Errorf("%s: the field is changed", c.name)
					}
					return string(out), cmd.Report()
				},
				"the embedded Cmd": func() (string, *Report) {
					cmd := c.s.Command("/usr/bin/env")
					cmd.Env, cmd.Dir = c.env, "/"
					out, err := cmd.Cmd.CombinedOutput()
					if err != nil {
						t.Errorf("%s: %v: %s", c.name, err, out)
					}
					return string(out), cmd.Report()
				},
				"Wrap": func() (string, *Report) {
					cmd := exec.Command("/usr/bin/env")
					cmd.Env, cmd.Dir = c.env, "/"
					if err := c.s.Wrap(cmd); err != nil {
						t.Fatal(err)
					}
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Errorf("%s: %v: %s", c.name, err, out)
					}
					return string(out), ReportOf(cmd)
				},
			} {
				out, r := run()
				got := strings.Split(out, "\n")
				for _, kv := range c.has {
					if !slices.Contains(got, kv) {
						t.Errorf("%s by %s: %s is missing:\n%s", c.name, how, kv, out)
					}
				}
				for _, kv := range c.hasNot {
					if slices.Contains(got, kv) {
						t.Errorf("%s by %s: it has %s", c.name, how, kv)
					}
				}
				line := r.Bound(policy.BoundEnvironment)
				if line.State != c.state || !strings.Contains(r.String(), c.says) || strings.Contains(r.String(), "Env.AsGiven") != c.isGiven || strings.Contains(r.String(), "abc") {
					t.Errorf("%s by %s: want %s and %q:\n%s", c.name, how, c.state, c.says, r)
				}
			}
		}
	})
}

// TestKernelAnOwnEnvIsNoGateForACredential: a credential's secret in what the caller has of the
// harness's environment is its placeholder.
func TestKernelAnOwnEnvIsNoGateForACredential(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		t.Setenv("GITHUB_TOKEN", "hunter-two")
		t.Setenv("ALIAS", "hunter-two")
		s := networkSandbox(t, w, func(p *Policy) {
			p.Files.Read = append(p.Files.Read, "/usr/bin/env")
			p.Env = Env{Pass: []string{"*"}}
			p.Network.Hosts = []string{"a.example"}
			p.Network.Credentials = []policy.Credential{{Name: "GITHUB_TOKEN", Secret: "hunter-two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}
		})
		cmd := s.Command("/usr/bin/env")
		cmd.Env, cmd.Dir = append(os.Environ(), "X=1"), "/"
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "hunter-two") || !strings.Contains(string(out), "ALIAS=") || !cmd.Report().Held() {
			t.Errorf("%v\n%s\n%s", err, out, cmd.Report())
		}
	})
}

// TestKernelAPlaceholderIsTheSandboxs: a tool may keep it in a file for the next command. Another Sandbox has another one.
func TestKernelAPlaceholderIsTheSandboxs(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		var said []string
		for range 2 {
			s := networkSandbox(t, w, func(p *Policy) {
				p.Network.Hosts = []string{"a.example"}
				p.Network.Credentials = []policy.Credential{{Name: "TOKEN", Secret: "hunter-two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}
			})
			for range 2 {
				c := s.Command("/bin/sh", "-c", `echo "$TOKEN"`)
				c.Dir = "/"
				out, err := c.Output()
				if err != nil || !strings.HasPrefix(string(out), "holdfast-") {
					t.Fatalf("%q, %v", out, err)
				}
				said = append(said, string(out))
			}
		}
		if said[0] != said[1] || said[2] != said[3] || said[0] == said[2] {
			t.Errorf("%q", said)
		}
	})
}

// TestKernelNoProxyIsNamedThatCannotBeReached: the harness's own proxies, such as those of a sandbox around it, are named to a tool that has the harness's
// network, and to one whose policy says so.
func TestKernelNoProxyIsNamedThatCannotBeReached(t *testing.T) {
	theirs := map[string]string{"HTTPS_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "FTP_PROXY": "http://p:9", "CARGO_HTTP_PROXY": "http://p:9", "HOLDFAST_SOCKS_PROXY": "socks5h://p:9"}
	for _, without := range [][]kerneltest.Feature{nil, {kerneltest.Namespaces}} {
		kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
			kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
				for name, value := range theirs {
					t.Setenv(name, value)
				}
				t.Setenv("GOPROXY", "off")
				dir := t.TempDir()
				for _, test := range []struct {
					name   string
					change func(*Policy)
					own    bool
					named  []string
				}{
					{"nothing is allowed", func(p *Policy) { p.Network.Explain = false }, false, nil},
					{"nor with an Env of the command's", func(p *Policy) { p.Network.Explain = false }, true, nil},
					{"the harness's network", func(p *Policy) { p.Network = Network{Host: true} }, false, []string{"127.0.0.1:9", "p:9"}},
					{"ports of the harness's", func(p *Policy) { p.Network = Network{Loopback: []uint16{9}} }, false, []string{"127.0.0.1:9", "p:9"}},
					{"set on purpose", func(p *Policy) {
						p.Network.Explain, p.Env.Set = false, map[string]string{"http_proxy": "http://127.0.0.1:9"}
					}, false, []string{"127.0.0.1:9"}},
				} {
					p := Workspace(dir)
					if without != nil {
						p = p.InContainer()
					}
					test.change(&p)
					s, err := New(p)
					if err != nil {
						t.Fatal(err)
					}
					c := s.Command("env")
					if test.own {
						c.Env = append(os.Environ(), "X=1")
					}
					out := outputOf(t, c)
					for _, n := range []string{"127.0.0.1:9", "p:9"} {
						if named := strings.Contains(out, n); named != slices.Contains(test.named, n) {
							t.Errorf("%s: %q is named: %v: %s", test.name, n, named, out)
						}
					}
					if !strings.Contains(out, "GOPROXY=off") {
						t.Errorf("%s: GOPROXY is missing: %s", test.name, out)
					}
					s.Close()
				}
			})
		})
	}
}
