package sandbox_test

import (
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A root made by hand: the system read-only, a project to write, nothing else.
func ExamplePolicy_layout() {
	policy := sandbox.Policy{
		Root: &rootfs.Layout{Entries: []rootfs.Entry{
			rootfs.Bind{Source: "/usr", At: "/usr"},
			rootfs.Bind{Source: "/etc/alternatives", At: "/etc/alternatives", Optional: true},
			rootfs.Symlink{Target: "usr/bin", At: "/bin"},
			rootfs.Symlink{Target: "usr/lib", At: "/lib"},
			rootfs.Symlink{Target: "usr/lib64", At: "/lib64"},
			rootfs.Proc{At: "/proc"},
			rootfs.Dev{At: "/dev"},
			rootfs.Tmpfs{At: "/tmp", Mode: 0o777 | fs.ModeSticky, Bytes: 1 << 30, NoExec: true},
			rootfs.Dir{At: "/run", Mode: 0o700},
			rootfs.File{At: "/etc/hostname", Data: "inside\n", Mode: 0o444},
			rootfs.Bind{Source: "/srv/project", At: "/srv/project", Write: true},
			rootfs.Bind{Source: "/srv/project/data", At: "/srv/project/data", NoExec: true},
			rootfs.Bind{Source: "/srv/plugins", At: "/srv/plugins", NoExecve: true, Optional: true},
			rootfs.RemountReadOnly{At: "/"},
		}},
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
	s, err := sandbox.New(sandbox.Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}}}, Programs: []seccomp.Program{program}})
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
