package sandbox_test

import (
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A root made by hand: the system read-only, a project to write, nothing else.
func ExamplePolicy_layout() {
	policy := sandbox.Policy{
		Layout: []sandbox.Entry{
			sandbox.Bind{Source: "/usr", At: "/usr"},
			sandbox.Bind{Source: "/etc/alternatives", At: "/etc/alternatives", Optional: true},
			sandbox.Symlink{Target: "usr/bin", At: "/bin"},
			sandbox.Symlink{Target: "usr/lib", At: "/lib"},
			sandbox.Symlink{Target: "usr/lib64", At: "/lib64"},
			sandbox.Proc{At: "/proc"},
			sandbox.Dev{At: "/dev"},
			sandbox.Tmpfs{At: "/tmp", Mode: 0o777 | fs.ModeSticky, Bytes: 1 << 30, NoExec: true},
			sandbox.Dir{At: "/run", Mode: 0o700},
			sandbox.File{Path: "/etc/hostname", Data: "inside\n", Mode: 0o444},
			sandbox.Bind{Source: "/srv/project", At: "/srv/project", Write: true},
			sandbox.Bind{Source: "/srv/project/data", At: "/srv/project/data", NoExec: true},
			sandbox.Bind{Source: "/srv/plugins", At: "/srv/plugins", NoExecve: true, Optional: true},
			sandbox.RemountReadOnly{At: "/"},
		},
	}
	s, err := sandbox.New(policy)
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("make") // looked for inside
	cmd.Dir = "/srv/project"
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// Everything that an entry can say.
func ExampleEntry() {
	open, err := os.Open("/srv/images/base")
	if err != nil {
		log.Fatal(err)
	}
	defer open.Close()
	entries := []sandbox.Entry{
		sandbox.Bind{File: open, At: "/"},
		sandbox.Bind{Source: "/dev/kvm", At: "/dev/kvm", Write: true, Devices: true},
		sandbox.Dev{At: "/dev", Console: "/dev/pts/0"},
		sandbox.Proc{At: "/proc", Uncovered: true},
		sandbox.Mqueue{At: "/dev/mqueue"},
		sandbox.DataBind{At: "/etc/resolv.conf", Data: "nameserver 127.0.0.1\n", Mode: 0o644, Write: false},
		sandbox.Dir{At: "/secret", Mode: sandbox.NoAccess},
		sandbox.Chmod{At: "/secret", Mode: 0o700},
		sandbox.ReadOnlyOverlay{At: "/opt", Layers: []string{"/srv/opt", "/srv/opt-local"}},
		sandbox.TmpOverlay{At: "/var/cache", Layers: []string{"/var/cache"}},
		sandbox.Overlay{At: "/home", Layers: []string{"/srv/home"}, Upper: "/srv/changes", Work: "/srv/work"},
	}
	fmt.Println(len(entries))
}

// What a sandbox shares, whom its tool takes itself for, and what it keeps.
func ExampleNamespaces() {
	user, err := os.Open("/proc/4711/ns/user")
	if err != nil {
		log.Fatal(err)
	}
	pid, err := os.Open("/proc/4711/ns/pid")
	if err != nil {
		log.Fatal(err)
	}
	joined := sandbox.Namespaces{User: user, PID: pid, ThenUser: user, SharePID: true}
	own := sandbox.Namespaces{
		ShareIPC: true, ShareUTS: false, ShareCgroup: true, ShareUser: false,
		As: &sandbox.IDs{UID: 0, GID: 0}, OneLevel: true, Joinable: true, CheckNoUsers: false, NoUsers: false,
		Hostname: "inside", AsPID1: false, MappedOutside: false,
	}
	admin, err := sandbox.ParseCapability("CAP_NET_ADMIN")
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range []sandbox.Namespaces{joined, own} {
		policy := sandbox.Policy{
			Layout: []sandbox.Entry{sandbox.Bind{Source: "/", At: "/"}}, Namespaces: n, Nest: true, Syscalls: seccomp.Off(),
			Privileges: sandbox.Privileges{Capabilities: []sandbox.Capability{admin}, All: false}, Locks: []string{"/run/lock/app"},
		}
		_, err := sandbox.New(policy)
		fmt.Println(err)
	}
}

// A filter that somebody else has compiled, and hooks that see the sandbox come.
func ExampleCmd_born() {
	code, err := os.ReadFile("filter.bpf")
	if err != nil {
		log.Fatal(err)
	}
	program, err := seccomp.ParseProgram(code)
	if err != nil {
		log.Fatal(err)
	}
	s, err := sandbox.New(sandbox.Policy{Layout: []sandbox.Entry{sandbox.Bind{Source: "/", At: "/"}}, Programs: []seccomp.Program{program}})
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("true")
	cmd.Born = func(pid int) error {
		_, err := fmt.Println("nothing is built, and its first process is", pid)
		return err
	}
	cmd.Built = func(pid int) error {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/usr", pid))
		return err
	}
	var start *sandbox.StartError
	switch err := cmd.Run().(type) {
	case *sandbox.StartError:
		start = err
		fmt.Println("not built:", start.Field, start.Found)
	}
}
