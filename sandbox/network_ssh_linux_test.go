package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The tool that connects as ssh does: by the command that it is told of, in ssh's
// configuration or in its environment.
var _ = offer(programs, "proxycommand", func(args []string) {
	text, _ := os.ReadFile(args[0])
	_, command, ok := strings.Cut(string(text), "ProxyCommand /")
	if !ok {
		_, command, ok = strings.Cut(os.Getenv("GIT_SSH_COMMAND"), "ProxyCommand=/")
	}
	if !ok {
		fmt.Println("no command")
		return
	}
	command, _, _ = strings.Cut(command, "\n")
	words := strings.Fields("/" + strings.TrimSuffix(command, "'"))
	for _, h := range args[1:] {
		c := exec.Command(words[0], append([]string{h, "80"}, words[3:]...)...)
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
	f, err := os.OpenFile(words[0], os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	fmt.Println("written:", err == nil, "removed:", os.Remove(words[0]) == nil)
})

func TestKernelNetworkConnectsForSSH(t *testing.T) {
	kerneltest.Long(t)
	for name, system := range map[string]string{"told by ssh's configuration": clientenv.SystemSSHConfigs[0], "told by the environment": "/nowhere"} {
		t.Run(name, func(t *testing.T) { connectsForSSH(t, system) })
	}
}

func connectsForSSH(t *testing.T, system string) {
	if _, err := os.Stat(system); err != nil && system != "/nowhere" {
		t.Skipf("this machine has no configuration of ssh: %v", err)
	}
	inNetwork(t, func(p *Policy) {
		p.Network.Hosts = []string{"allowed.example:80"}
		p.Network.SSH = true
		if system == "/nowhere" {
			p.Files.Hide = []string{filepath.Dir(clientenv.SystemSSHConfigs[0])}
		}
	}, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "proxycommand", system, "allowed.example", "denied.example")
		if !s.ready.Plan.Namespaces.Mount {
			if out != "no command\n" || !strings.Contains(r.String(), "ssh reaches nothing") {
				t.Errorf("without a place to show it: %s%s", out, r)
			}
			return
		}
		if told := strings.Contains(r.String(), "git's ssh alone"); told != (system == "/nowhere") {
			t.Errorf("that git alone is told: %t\n%s", told, r)
		}
		lines := strings.Split(out, "\n")
		if !strings.HasPrefix(lines[0], "<nil>: HTTP/1.0 200 OK") || !strings.Contains(lines[0], "served GET allowed.example /relayed") {
			t.Errorf("an allowed host: %s\n%s", out, r)
			return
		}
		if !strings.HasPrefix(lines[1], "exit status 1: "+clientenv.RelayName+": 403") || !strings.Contains(lines[1], "denied.example") {
			t.Errorf("a denied host: %s", lines[1])
		}
		if lines[2] != "written: false removed: false" {
			t.Errorf("the harness's program: %s", lines[2])
		}
	})
}

// walledIn are the sets of walls with a root of the sandbox's own.
var walledIn = []walls{allSets[0], allSets[1]}

func TestKernelNetworkSSHWorksWithoutBeingTold(t *testing.T) {
	kerneltest.Long(t)
	for _, name := range []string{"ssh", "scp", "sftp"} {
		kerneltest.Need(t, kerneltest.Command(name))
	}
	if _, err := os.Stat(clientenv.SystemSSHConfigs[0]); err != nil {
		t.Skipf("this machine has no configuration of ssh: %v", err)
	}
	eachWall(t, walledIn, func(t *testing.T, w walls) {
		d := newSSHD(t)
		s := sshSandbox(t, w, d, func(p *Policy) { p.Network.Loopback = []uint16{portOf(t, d.address)} })
		if err := os.WriteFile(filepath.Join(d.dir, "there"), []byte("from the server\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ name, needs, script, want string }{
			{"ssh", "", `ssh $1 cat there`, "from the server"},
			{"ssh with an empty environment", "", `env -i /usr/bin/ssh $1 cat there`, "from the server"},
			{"scp, up", sftpServers[0], `echo from inside >here && scp -q here $1:come && ssh $1 cat come`, "from inside"},
			{"scp, down", sftpServers[0], `scp -q $1:there . && cat there`, "from the server"},
			{"scp by the old protocol", "scp", `scp -O -q $1:there . && cat there`, "from the server"},
			{"sftp", sftpServers[0], `echo get there | sftp -q -b - $1 >/dev/null && cat there`, "from the server"},
			{"rsync", "rsync", `rsync -e ssh $1:there . && cat there`, "from the server"},
			{"a jump", "", `ssh -J $1 sub.allowed.example cat there`, "from the server"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if filepath.IsAbs(c.needs) && sftpServer() == "" {
					t.Skip("this machine has no server of SFTP")
				}
				if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
					t.Skip(err)
				}
				if out, r, err := shell(s, c.script, "allowed.example"); err != nil || !strings.Contains(out, c.want) {
					t.Errorf("an allowed host: %v\n%s\n%s", err, out, r)
				}
				out, r, err := shell(s, c.script, "denied.example")
				if err == nil || !strings.Contains(out, clientenv.RelayName+": 403") || !strings.Contains(out, "denied.example") {
					t.Errorf("a denied host: %v\n%s\n%s", err, out, r)
				}
				if len(r.Violations) != 1 || r.Violations[0].Host != "denied.example" || r.Violations[0].Port != 22 {
					t.Errorf("a denied host: %+v", r.Violations)
				}
			})
		}
		port := fmt.Sprint(portOf(t, d.address))
		for _, host := range []string{"127.0.0.1", "localhost"} {
			if out, r, err := shell(s, `ssh -p $2 $1 cat there`, host, port); err != nil || !strings.Contains(out, "from the server") || len(r.Violations) > 0 {
				t.Errorf("%s, which no proxy is asked for: %v\n%s\n%s", host, err, out, r)
			}
		}
		if out, _, err := shell(s, `GIT_SSH_COMMAND=$GIT_SSH_COMMAND; echo "($GIT_SSH_COMMAND)"`); err != nil || out != "()\n" {
			t.Errorf("what git is told: %v, %s", err, out)
		}
	})
}

// The tool that would have ssh read something else.
var _ = offer(programs, "rewriteconfig", func(args []string) {
	for _, at := range args {
		for name, act := range map[string]func() error{
			"open":     func() error { _, err := os.OpenFile(at, os.O_WRONLY, 0); return err },
			"truncate": func() error { return os.Truncate(at, 0) },
			"remove":   func() error { return os.Remove(at) },
			"replace":  func() error { return os.Rename("/tmp/own", at) },
			"move":     func() error { return os.Rename(at, at+".old") },
			"mode":     func() error { return os.Chmod(at, 0o666) },
			"uncover":  func() error { return syscall.Unmount(at, syscall.MNT_DETACH) },
			"cover":    func() error { return syscall.Mount("/tmp/own", at, "", syscall.MS_BIND, "") },
			"beside":   func() error { return os.WriteFile(at+".d/own.conf", nil, 0o600) },
		} {
			if act() == nil {
				fmt.Println(name, at)
			}
		}
	}
	text, err := os.ReadFile(args[0])
	fmt.Printf("%v\n%s", err, text)
})

func TestKernelNetworkSSHsConfigurationIsNotTheTools(t *testing.T) {
	at := clientenv.SystemSSHConfigs[0]
	system, err := os.ReadFile(at)
	if err != nil {
		t.Skipf("this machine has no configuration of ssh: %v", err)
	}
	eachWall(t, walledIn, func(t *testing.T, w walls) {
		s := networkSandbox(t, w, func(p *Policy) { p.Network.SSH, p.Network.Hosts = true, []string{"allowed.example"} })
		out, r := says(t, s, "rewriteconfig", at, compile.DefaultDir+"/"+compile.ConfigFile+"0")
		want := "<nil>\n" + clientenv.SSHConfig(clientenv.ProxyCommand(compile.DefaultDir+"/"+clientenv.RelayName, "http://127.0.0.1:3128"), string(system))
		if out != want {
			t.Errorf("got\n%s\nwant\n%s\n%s", out, want, r)
		}
		if now, err := os.ReadFile(at); err != nil || string(now) != string(system) {
			t.Errorf("the host's own has changed: %v", err)
		}
	})
}

func TestKernelNetworkSSHMakesAConfigurationWhereThereIsNone(t *testing.T) {
	kerneltest.Need(t, kerneltest.Command("ssh"))
	eachWall(t, walledIn, func(t *testing.T, w walls) {
		d := newSSHD(t)
		s := sshSandbox(t, w, d, func(p *Policy) {
			for i, dir := range p.Files.Read {
				if dir == "/etc" {
					p.Files.Read[i] = "/etc/passwd"
				}
			}
		})
		if out, r, err := shell(s, `ssh allowed.example echo said && cat /etc/ssh/ssh_config`); err != nil || !strings.HasPrefix(out, "said\n") || !strings.Contains(out, "ProxyCommand") {
			t.Errorf("%v\n%s\n%s", err, out, r)
		}
	})
}

// TestKernelNetworkSSHLeavesThePolicysFilesAlone: what is hidden stays so, under its
// own name and any other, and a file of the policy's own is not covered.
func TestKernelNetworkSSHLeavesThePolicysFilesAlone(t *testing.T) {
	at := clientenv.SystemSSHConfigs[0]
	eachWall(t, walledIn, func(t *testing.T, w walls) {
		for name, c := range map[string]struct {
			change func(p *Policy)
			want   string
		}{
			"hidden": {func(p *Policy) { p.Files.Hide = []string{filepath.Dir(at)} }, clientenv.RelayName + "\n"},
			"its own": {func(p *Policy) {
				p.Files.Read = slices.DeleteFunc(p.Files.Read, func(dir string) bool { return dir == "/etc" })
				p.Files.Make = []policy.File{{Path: at, Data: "the policy's\n"}}
			}, clientenv.RelayName + "\nthe policy's\n"},
		} {
			s := networkSandbox(t, w, func(p *Policy) {
				p.Network.SSH, p.Network.Hosts = true, []string{"allowed.example"}
				c.change(p)
			})
			out, r, err := shell(s, `ls $2; cat $1 2>/dev/null; case $GIT_SSH_COMMAND in *$2/*) ;; *) echo git is not told;; esac`, at, compile.DefaultDir)
			if err != nil || out != c.want {
				t.Errorf("%s: %v: %s\n%s", name, err, out, r)
			}
		}
	})
}

// TestKernelNetworkSSHTakesWhatTheSystemIncludes: it ends at a file whose owner is
// neither root nor its user, and in a user namespace the host's root is nobody.
func TestKernelNetworkSSHTakesWhatTheSystemIncludes(t *testing.T) {
	kerneltest.Need(t, kerneltest.Command("ssh"))
	included := clientenv.SystemSSHConfigs[0] // a file of root's, on every machine
	if _, err := os.Stat(included); err != nil {
		t.Skipf("this machine has no configuration of ssh: %v", err)
	}
	eachUser(t, func(t *testing.T) {
		dir := t.TempDir()
		own := filepath.Join(dir, "ssh_config")
		if err := os.WriteFile(own, []byte("Include "+included+"\nUser theirs\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := networkSandbox(t, allSets[0], func(p *Policy) {
			p.Files.Read = append(p.Files.Read, dir)
			p.Network.SSH, p.Network.Hosts = true, []string{"allowed.example"}
		})
		s.sshConfigs = []string{own}
		if err := s.compile(); err != nil {
			t.Fatal(err)
		}
		out, r, err := shell(s, `ssh -F $1 -G allowed.example; echo; stat -c owner:%u $2; grep -c " $2 " /proc/self/mountinfo`, own, included)
		if !strings.Contains(out, "user theirs\n") || !strings.Contains(out, "proxycommand "+compile.DefaultDir) || strings.Contains(out, "Bad owner") {
			t.Errorf("%v\n%s\n%s", err, out, r)
		}
		if me := fmt.Sprintf("owner:%d\n", os.Getuid()); !strings.Contains(out, me) || s.facts.UserNS && !strings.Contains(out, me+"1\n") {
			t.Errorf("it is not %s and a copy: %s", me, out)
		}
	})
}

// The tool that reads the system's bundle, as wget does.
var _ = offer(programs, "systembundle", func([]string) {
	for _, name := range proxy.SystemBundles {
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
	kerneltest.Long(t)
	inNetwork(t, credentialed, func(t *testing.T, s *Sandbox, w walls) {
		want := "true\n"
		if s.ready.NetConfig.Bundle == "" {
			want = "false\n"
			if s.ready.Plan.Namespaces.Mount {
				t.Skip("this machine has no bundle where a system has one")
			}
		}
		if out, r := says(t, s, "systembundle"); out != want && out != "none\n" {
			t.Errorf("it says %q, want %q\n%s", out, want, r)
		}
	})
}

func TestSSHsConfigurationIsReadWhereTheToolFindsTheHosts(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "config")
	inside := func(kind pathrule.Kind, on string, change func(in *compile.Input)) compile.Input {
		in := compile.Input{Facts: fixture.Host(), Tree: resolve.Tree{Entries: []resolve.Entry{{Path: on, Kind: kind, Dir: on == dir}}}}
		if change != nil {
			change(&in)
		}
		return in
	}
	for _, c := range []struct {
		name string
		in   compile.Input
		mode os.FileMode
		text string
		want bool
	}{
		{"shown", inside(pathrule.Read, dir, nil), 0o644, "Host *", true},
		{"shown alone", inside(pathrule.Read, at, nil), 0o644, "Host *", true},
		{"not shown", inside(pathrule.Read, dir+"/other", nil), 0o644, "Host *", false},
		{"hidden", inside(pathrule.Hide, dir, nil), 0o644, "Host *", false},
		{"the policy's own", inside(pathrule.Make, at, nil), 0o644, "Host *", false},
		{"a copy", inside(pathrule.CopyOnWrite, dir, nil), 0o644, "Host *", true},
		{"a copy that begins empty", inside(pathrule.CopyOnWrite, dir, func(in *compile.Input) { in.Facts.Overlay = fixture.No("overlay") }), 0o644, "Host *", false},
		{"not everybody's to read", inside(pathrule.Read, dir, nil), 0o640, "Host *", false},
		{"very long", inside(pathrule.Read, dir, nil), 0o644, strings.Repeat("#", largestConfig+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(at)
			if err := os.WriteFile(at, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, c.mode); err != nil {
				t.Fatal(err)
			}
			real, text, info := hostConfig(&c.in, at)
			if got := info != nil; got != c.want || got && (real != at || text != c.text) {
				t.Errorf("it is read: %t, %q %q", got, real, text)
			}
		})
	}
	if err := errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o644), os.Chmod(at, 0o644)); err != nil {
		t.Fatal(err)
	}
	in := inside(pathrule.Read, dir, nil)
	if _, _, info := hostConfig(&in, at); info != nil {
		t.Error("a pipe is read")
	}
}
