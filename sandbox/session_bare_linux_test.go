package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// bareSets are the sets without namespaces in which there are sessions: with Landlock's scopes, with a filter in their place.
var bareSets = []walls{allSets[3], {name: "without namespaces, Landlock ABI 5", without: allSets[3].without, may: allSets[3].may, abi: 5}}

// TestKernelAttackTheProcessesOfABareSession: where no pid namespace protects init, the tools can end their session by it where
// they are in its Landlock domain, and never outlive it. What is outside of the domain, or named in the filter, they do not reach.
func TestKernelAttackTheProcessesOfABareSession(t *testing.T) {
	kerneltest.Long(t)
	const nothing, itsCommand, itsSession = "", "warden", "init"
	for _, test := range []struct {
		name, attack     string // $1 the victim's warden, $2 init, $3 the keeper, $4 the session's stage, $5 the harness
		scoped, filtered string // what ends by it
	}{
		{"a warden is killed", "kill -9 $1", itsCommand, itsCommand},
		{"a warden is stopped", "kill -STOP $1", itsCommand, itsCommand},
		{"init is killed", "kill -9 $2", itsSession, nothing},
		{"init is stopped", "kill -STOP $2", itsSession, nothing},
		{"init and a warden are sent what they can block", "for s in 1 2 3 6 10 12 13 14 15 17 18 20 21 22 29 31; do kill -$s $1 $2; done", nothing, nothing},
		{"the keeper and the stage are killed and stopped", "for s in 0 KILL STOP TERM CONT; do kill -$s $3 && echo $3; kill -$s $4 && echo $4; kill -$s -- -$3 && echo group; done; true", nothing, nothing},
		{"everything is killed", "kill -0 $5 && exit; kill -9 -1", itsSession, nothing},
		{"everything is stopped", "kill -0 $5 && exit; kill -STOP -1", itsSession, nothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			inSessions(t, bareSets, func(t *testing.T, s *Session, w walls) {
				want := test.scoped
				if w.abi != 0 {
					want = test.filtered
				}
				victim := s.sh("setsid sleep 1000 & sleep 1000; true")
				if err := victim.Start(); err != nil {
					t.Fatal(err)
				}
				list := awaitProcesses(t, s, 2, "sleep")
				if len(list) != 2 {
					t.Fatal(list)
				}
				own := filepath.Dir(outputOf(t, s.sh("echo $TMPDIR")))
				tool := victimsTool(t, s)
				warden := parentOf(t, tool)
				init := parentOf(t, warden)
				keeper := parentOf(t, init)
				stage := parentOf(t, keeper)
				out, _ := s.sh(fmt.Sprintf("set -- %d %d %d %d %d; %s", warden, init, keeper, stage, os.Getpid(), test.attack)).Output()
				if len(out) > 0 {
					t.Errorf("ESCAPE: reached %s", out)
				}
				if want == nothing {
					if list := awaitProcesses(t, s, 2, "sleep"); len(list) != 2 {
						t.Errorf("ESCAPE: what is left of the victim is %v", list)
					}
					victim.Process.Kill()
				}
				err := victim.Wait()
				var lost *ProcessError
				if is := errors.As(err, &lost); is != (want != nothing) || is && lost.Process != want {
					t.Errorf("the victim's end: %v", err)
				}
				for _, p := range list {
					if !isDead(p.Outside) {
						t.Errorf("ESCAPE: %v outlives its warden", p.Args)
					}
				}
				if want != itsSession {
					outputOf(t, s.sh("true"))
					s.Close()
				}
				var over *policy.SessionError
				if err := s.sh("true").Run(); !errors.As(err, &over) {
					t.Errorf("a command after the session's end: %v", err)
				}
				if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the session's directory after its end: %v", err)
				}
			})
		})
	}
}

// victimsTool returns the number of the session's process that has no parent in it.
func victimsTool(t *testing.T, s *Session) int {
	t.Helper()
	list, err := s.Processes()
	for _, p := range list {
		if len(p.Args) > 0 && p.Args[0] == "/bin/sh" {
			return p.Outside
		}
	}
	t.Fatal(list, err)
	return 0
}

// TestKernelABareSessionSharesItsNetwork: one pair of proxies, and one key, which others do not have.
func TestKernelABareSessionSharesItsNetwork(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, allSets[3:4], func(t *testing.T, w walls) {
		of := networkSandbox(t, w, allowedExample)
		var proxies []string
		for range 2 {
			s, err := of.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 {
				if out := outputOf(t, s.program("fetch", "http://allowed.example/")); !strings.HasPrefix(out, "200 ") {
					t.Errorf("%q", out)
				}
				proxies = append(proxies, outputOf(t, s.sh("echo $http_proxy")))
			}
		}
		if proxies[0] == "" || proxies[0] != proxies[1] || proxies[2] != proxies[3] || proxies[0] == proxies[2] {
			t.Errorf("the proxies of two sessions: %q", proxies)
		}
	})
}

// TestKernelWaitPortOfASharedNetwork waits for a server of the session, and not for one of the machine.
func TestKernelWaitPortOfASharedNetwork(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p := attackPolicy(t, "", w)
		p.Network = policy.Network{Host: true}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.program("session server").Start(); err != nil {
			t.Fatal(err)
		}
		var served net.TCPAddr
		for served.Port == 0 {
			if out, err := s.sh("cat ${TMPDIR:-/tmp}/address").Output(); err == nil {
				at, err := net.ResolveTCPAddr("tcp", string(out))
				if err != nil {
					t.Fatal(err)
				}
				served = *at
			}
		}
		if err := s.WaitPort(t.Context(), uint16(served.Port)); err != nil {
			t.Error(err)
		}
		machines, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer machines.Close()
		if is, err := s.live.Listens(uint16(machines.Addr().(*net.TCPAddr).Port)); is || err != nil {
			t.Errorf("a server of the machine: %t, %v", is, err)
		}
		var none *policy.UnsupportedError
		if _, err := s.DialInside(t.Context(), 8080); err == nil || errors.As(err, &none) {
			t.Errorf("a port that the policy does not name: %v", err)
		}
	})
}

// TestKernelFilesOfABareSession are what its tools see, and are refused where they are refused to them.
func TestKernelFilesOfABareSession(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, allSets[3:4], func(t *testing.T, w walls) {
		base := t.TempDir()
		dir := filepath.Join(base, "write")
		if err := errors.Join(os.Mkdir(filepath.Join(base, "read"), 0o700), os.Mkdir(dir, 0o700), os.WriteFile(base+"/secret", []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, base, w)
		p.Files.Protect, p.Files.Private = policy.Protect{}, []string{"/var/tmp"}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f := s.Files()
		outputOf(t, s.sh("echo tool > $TMPDIR/file; echo home > ~/file; ln -s ../secret "+dir+"/link; mkfifo "+dir+"/fifo"))
		own := filepath.Dir(outputOf(t, s.sh("echo $TMPDIR")))
		for name, want := range map[string]string{own + "/tmp/file": "tool\n", own + "/file": "home\n"} {
			if text, err := f.ReadFile(name); string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		if err := errors.Join(f.WriteFile(dir+"/file", []byte("text"), 0o600), f.Replace(dir+"/file", []byte("other"))); err != nil {
			t.Error(err)
		}
		if got := outputOf(t, s.sh("cat "+dir+"/file")); got != "other" {
			t.Errorf("what the harness has written: %q", got)
		}
		read := func(name string) error {
			_, err := f.ReadFile(name)
			return err
		}
		for name, err := range map[string]error{
			"what is not shown":             read(base + "/secret"),
			"by a link":                     read(dir + "/link"),
			"by /proc":                      read("/proc/self/root" + base + "/secret"),
			"the memory of a warden":        read(fmt.Sprintf("/proc/%d/mem", parentOf(t, fileServer(t, s)))),
			"to write where it may read":    f.WriteFile(base+"/read/file", nil, 0o600),
			"to write in the machine's tmp": f.WriteFile("/tmp/holdfast-lost", nil, 0o600),
			"a hook":                        f.MkdirAll(dir+"/.git/hooks/x", 0o700),
			"a shell's file":                f.WriteFile(dir+"/.bashrc", nil, 0o600),
			"a protected name by linking":   f.Symlink("file", dir+"/.envrc"),
		} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// fileServer returns the process that serves the session's files.
func fileServer(t *testing.T, s *Session) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		list, err := s.Processes()
		if len(list) == 1 {
			return list[0].Outside
		}
		if time.Now().After(end) {
			t.Fatal(list, err)
		}
	}
}
