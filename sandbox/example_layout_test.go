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
