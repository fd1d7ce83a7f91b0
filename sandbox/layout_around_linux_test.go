package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

func hostShell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func TestKernelLayoutNamespaces(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	with := func(n rootfs.Namespaces) func(*sandbox.Policy) {
		return func(p *sandbox.Policy) { p.Root.Namespaces = n }
	}
	shared := func(kind string) string {
		return `test "$(readlink /proc/self/ns/` + kind + `)" = ` + strconv.Quote(ownNamespace(kind)) + ` && echo shared || echo own`
	}
	runLayoutCases(t, []layoutCase{
		{name: "all namespaces are new", script: shared("ipc") + ";" + shared("uts") + ";" + shared("cgroup") + ";" + shared("net") + ";" + shared("user") + ";" + shared("pid"), want: "own\nown\nown\nown\nown\nown"},
		{name: "ipc is shared", policy: with(rootfs.Namespaces{ShareIPC: true}), script: shared("ipc") + ";" + shared("uts"), want: "shared\nown"},
		{name: "uts is shared", policy: with(rootfs.Namespaces{ShareUTS: true}), script: shared("uts") + ";" + shared("cgroup"), want: "shared\nown"},
		{name: "cgroup is shared", policy: with(rootfs.Namespaces{ShareCgroup: true}), script: shared("cgroup") + ";" + shared("ipc"), want: "shared\nown"},
		{name: "pid is shared", policy: with(rootfs.Namespaces{SharePID: true}), script: shared("pid") + ";test -d /proc/" + strconv.Itoa(os.Getpid()) + " && echo seen", want: "shared\nseen"},
		{name: "processes outside are not seen", script: "ls /proc | grep -c '^[0-9]*$' | sed 's/[3-9]/few/'", want: "few"},
		{name: "the network is shared", policy: func(p *sandbox.Policy) { p.Network.Host = true }, script: shared("net"), want: "shared"},
		{name: "a host name", policy: with(rootfs.Namespaces{Hostname: "inside"}), script: "uname -n", want: "inside"},
		{name: "another user", policy: with(rootfs.Namespaces{As: &rootfs.IDs{UID: 4242, GID: 77}}), script: "id -u; id -g; awk '{print $1,$3}' /proc/self/uid_map", want: "4242\n77\n4242 1"},
		{name: "the same user", script: "id -u", want: strconv.Itoa(os.Getuid())},
		{name: "the tool is process 1", policy: with(rootfs.Namespaces{AsPID1: true}), script: "echo $$; readlink /proc/self", want: "1\n2"},
		{name: "the tool is not process 1", script: "test $$ -gt 1 && echo other", want: "other"},
		{name: "machine settings cannot be changed", script: "for f in /proc/sys/kernel/panic /proc/sysrq-trigger; do echo 0 2>/dev/null >$f || echo refused; done", want: "refused\nrefused"},
		{name: "a device's mode is the machine's", script: "chmod 0666 /dev/null 2>/dev/null || echo refused; echo x >/dev/null && echo written", want: "refused\nwritten"},
		{name: "user namespaces cannot be made", policy: with(rootfs.Namespaces{NoUsers: true}), script: "unshare -U true 2>/dev/null || echo refused", want: "refused"},
	})
}

func ownNamespace(kind string) string {
	link, _ := os.Readlink("/proc/self/ns/" + kind)
	return link
}

func TestKernelLayoutChecksThatNoUserNamespaceCanBeMade(t *testing.T) {
	kerneltest.Parallel(t)
	runLayoutCases(t, []layoutCase{
		{name: "one can", policy: func(p *sandbox.Policy) { p.Root.Namespaces.CheckNoUsers = true }, want: startFails, wantErr: syscall.EEXIST},
		{name: "none can", policy: func(p *sandbox.Policy) { p.Root.Namespaces.NoUsers = true }, script: "echo ran", want: "ran"},
	})
}

func TestKernelLayoutPrivileges(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const show = "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)|^NoNewPrivs' /proc/self/status | tr -d '\\t' | tr '\\n' ' '"
	const none, net = "0000000000000000", "0000000000001000"
	runLayoutCases(t, []layoutCase{
		{name: "none", script: show, want: "CapInh:" + none + " CapPrm:" + none + " CapEff:" + none + " CapBnd:" + none + " CapAmb:" + none + " NoNewPrivs:1 "},
		{name: "one", policy: func(p *sandbox.Policy) { p.Root.Privileges.Capabilities = []rootfs.Capability{unix.CAP_NET_ADMIN} },
			script: show, want: "CapInh:" + net + " CapPrm:" + net + " CapEff:" + net + " CapBnd:" + net + " CapAmb:" + net + " NoNewPrivs:1 "},
		{name: "one over the tool's own mounts", policy: func(p *sandbox.Policy) {
			p.Root.Privileges.Capabilities, p.Root.Namespaces.OneLevel = []rootfs.Capability{unix.CAP_SYS_ADMIN}, true
			p.Root.Entries = slices.DeleteFunc(p.Root.Entries, func(e rootfs.Entry) bool { _, dev := e.(rootfs.Dev); return dev })
			p.Root.Entries, p.Root.Nest, p.Syscalls = append(p.Root.Entries, rootfs.Dir{At: "/m"}), true, seccomp.Off()
		}, script: "mount -t tmpfs none /m && echo mounted", want: "mounted"},
		{name: "one, but not over its mounts", policy: func(p *sandbox.Policy) {
			p.Root.Privileges.Capabilities = []rootfs.Capability{unix.CAP_SYS_ADMIN}
			p.Root.Entries, p.Root.Nest, p.Syscalls = append(p.Root.Entries, rootfs.Dir{At: "/m"}), true, seccomp.Off()
		}, script: "mount -t tmpfs none /m 2>/dev/null || echo refused", want: "refused"},
	})
}

// TestKernelLayoutKeepsInitApart: the tool cannot look into the sandbox's first
// process, joinable or not, in a user namespace of its own or, as root, in none.
func TestKernelLayoutKeepsInitApart(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	var cases []layoutCase
	for _, joinable := range []bool{false, true} {
		for _, share := range []bool{false, true} {
			cases = append(cases, layoutCase{name: fmt.Sprintf("joinable %v and sharing %v", joinable, share), policy: func(p *sandbox.Policy) {
				p.Root.Namespaces.Joinable, p.Root.Namespaces.ShareUser = joinable, share && os.Getuid() == 0
			}, script: "for f in root cwd exe ns/user fd/5; do readlink /proc/1/$f; done 2>/dev/null; cat /proc/1/environ >/dev/null 2>&1 && echo environ; (: </proc/1/mem) 2>/dev/null && echo memory; echo done", want: "done"})
		}
	}
	runLayoutCases(t, cases)
}

// TestKernelLayoutProtectsNames: below what a layout shows for writing, too, and
// not by way of a link, by which the names would be looked for in the wrong place.
func TestKernelLayoutProtectsNames(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	protect := func(p *sandbox.Policy) { p.Files.Protect = policy.Protect{} }
	write := func(h string) rootfs.Entry { return rootfs.Bind{Source: at(h, "tree"), At: "/b/c", Write: true} }
	const script = "echo x 2>/dev/null >/b/c/sub/.bashrc || echo refused; echo y >/b/c/sub/ok && echo written"
	runLayoutCases(t, []layoutCase{
		{name: "protected", entries: one(write), policy: protect, script: script, want: "refused\nwritten", after: "! test -e tree/sub/.bashrc"},
		{name: "not protected", entries: one(write), script: script, want: "written", after: "test -e tree/sub/.bashrc"},
		{name: "hidden", entries: one(write), policy: func(p *sandbox.Policy) { p.Files.HideNames = []string{"file"} }, script: "cat /b/c/file 2>/dev/null || echo refused", want: "refused"},
		{name: "through a link", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/d"}, rootfs.Symlink{At: "/b", Target: "/d"}, write(h)}
		}, policy: protect, want: startFails, wantErr: syscall.ELOOP},
	})
}

// TestKernelLayoutLocks: the lock is there while the tool runs, and not after.
func TestKernelLayoutLocks(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			host := layoutHost(t)
			p := sandbox.Policy{Root: &rootfs.Layout{Entries: append(systemEntries(), rootfs.Bind{Source: at(host, "tree"), At: "/b"}), Locks: []string{"/b/file"}}}
			s, err := sandbox.New(p)
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.Command("/bin/cat")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := tryLock(at(host, "tree/file")); err == nil {
				t.Error("the file is not locked while the tool runs")
			}
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if err := tryLock(at(host, "tree/file")); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	})
}

func tryLock(p string) error {
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}

// TestKernelLayoutHooks: each is called at its time, with a process that is the
// sandbox's, and its error is Start's.
func TestKernelLayoutHooks(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, asPID1 := range []bool{false, true} {
				p := sandbox.Policy{Root: &rootfs.Layout{Entries: systemEntries(), Nest: true}, Syscalls: seccomp.Off()}
				p.Root.Namespaces.AsPID1, p.Root.Namespaces.Joinable = asPID1, true
				testHooks(t, p)
			}
		})
	})
}

func testHooks(t *testing.T, p sandbox.Policy) {
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	hook := func(name string, err error) func(int) error {
		return func(pid int) error {
			called = append(called, name)
			if link, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid"); link == "" || link == ownNamespace("pid") {
				t.Errorf("%s: process %d is in pid namespace %q", name, pid, link)
			}
			return err
		}
	}
	cmd := s.Command("true")
	cmd.Born, cmd.Built = hook("born", nil), hook("built", nil)
	if err := cmd.Run(); err != nil || strings.Join(called, " ") != "born built" {
		t.Errorf("%v, %v", called, err)
	}
	called = nil
	cmd = s.Command("true")
	cmd.Born, cmd.Built = hook("born", io.ErrShortWrite), hook("built", nil)
	if err := cmd.Run(); !errors.Is(err, io.ErrShortWrite) || len(called) != 1 {
		t.Errorf("%v, %v", called, err)
	}
	called = nil
	cmd = s.Command("true")
	cmd.Built = hook("built", io.ErrShortWrite)
	if err := cmd.Run(); !errors.Is(err, io.ErrShortWrite) || len(called) != 1 {
		t.Errorf("%v, %v", called, err)
	}
}

// TestKernelLayoutJoins: a second sandbox enters the namespaces of a first.
func TestKernelLayoutJoins(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			first := sandbox.Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}}, Nest: true}, Syscalls: seccomp.Off()}
			first.Root.Namespaces = rootfs.Namespaces{OneLevel: true, Joinable: true}
			s, err := sandbox.New(first)
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.Command("/bin/cat")
			pid := 0
			cmd.Built = func(p int) error { pid = p; return nil }
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			dir := "/proc/" + strconv.Itoa(pid) + "/ns/"
			user, err1 := os.Open(dir + "user")
			pidns, err2 := os.Open(dir + "pid")
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			defer user.Close()
			defer pidns.Close()
			userLink, _ := os.Readlink(dir + "user")
			pidLink, _ := os.Readlink(dir + "pid")
			for _, below := range []bool{false, true} {
				p := sandbox.Policy{Root: &rootfs.Layout{Entries: append([]rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}}, rootfs.Proc{At: "/proc", Uncovered: true}), Nest: true}, Syscalls: seccomp.Off()}
				p.Root.Namespaces = rootfs.Namespaces{User: user, PID: pidns, SharePID: !below}
				want := userLink + "\n" + pidLink
				out, err := runLayout(p, "readlink /proc/self/ns/user /proc/self/ns/pid")
				if below {
					want = userLink + "\n" // and one of its own
				}
				if err != nil || !strings.HasPrefix(out, want) || below && strings.HasSuffix(out, pidLink) {
					t.Errorf("below %v: %q %v, want %q", below, out, err, want)
				}
			}
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestKernelLayoutStart: the tool is looked for inside, by its own PATH, and its
// directory is one inside.
func TestKernelLayoutStart(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			entries := append(systemEntries(), rootfs.File{At: "/own/tool", Data: "#!/bin/sh\necho \"$0 $PWD $1\"\n", Mode: 0o755}, rootfs.Dir{At: "/home/me"}, rootfs.Dir{At: "/own/no"})
			s, err := sandbox.New(sandbox.Policy{Root: &rootfs.Layout{Entries: entries}})
			if err != nil {
				t.Fatal(err)
			}
			tests := []struct {
				name, tool, dir string
				env             []string
				want            string
				err             error
			}{
				{"by PATH", "tool", "", []string{"PATH=/nowhere:/own/no:/own", "HOME=/home/me"}, "/own/tool /home/me arg\n", nil},
				{"by its path", "/own/tool", "/own", []string{"HOME=/home/me"}, "/own/tool /own arg\n", nil},
				{"nowhere to go but the root", "/own/tool", "", []string{}, "/own/tool / arg\n", nil},
				{"not in PATH", "tool", "", []string{"PATH=/bin"}, "", syscall.ENOENT},
				{"a directory in PATH", "no", "", []string{"PATH=/own"}, "", syscall.EACCES},
				{"a directory that is not there", "/own/tool", "/none", nil, "", syscall.ENOENT},
			}
			for _, test := range tests {
				cmd := s.Command(test.tool, "arg")
				cmd.Dir, cmd.Env = test.dir, test.env
				out, err := cmd.Output()
				if string(out) != test.want || !errors.Is(err, test.err) {
					t.Errorf("%s: %q, %v", test.name, out, err)
				}
				if cmd.Dir != test.dir {
					t.Errorf("%s: Dir is %q afterwards", test.name, cmd.Dir)
				}
			}
		})
	})
}

// TestKernelLayoutPWD: a relative Dir is one from the working directory, and PWD
// is what os/exec makes of it: said if Env is nil, and left to the caller otherwise.
func TestKernelLayoutPWD(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			t.Chdir("/usr/lib")
			s, err := sandbox.New(sandbox.Policy{
				Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}, rootfs.Proc{At: "/proc"}, rootfs.Dev{At: "/dev"}}},
				Env:  sandbox.Env{Pass: []string{"PATH", "PWD"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			path := "PATH=/usr/bin:/bin"
			tests := []struct {
				name, dir string
				env       []string
			}{
				{"no Dir", "", []string{path, "PWD=/usr/lib"}},
				{"no Dir and another PWD", "", []string{path, "PWD=/some/where"}},
				{"no Dir and no PWD", "", []string{path}},
				{"no Dir and no Env", "", nil},
				{"a Dir", "/usr", nil},
				{"a Dir and an Env without PWD", "/usr", []string{path}},
				{"a Dir and another PWD", "/usr", []string{path, "PWD=/usr/lib/.."}},
				{"a Dir that is a dot", ".", nil},
				{"a Dir of dots", "..", nil},
				{"a Dir that is not clean", "../lib/..", nil},
				{"an absolute Dir that is not clean", "/usr/lib/../bin/", nil},
				{"a relative Dir and an Env", "../bin", []string{path, "PWD=."}},
			}
			const script = "readlink /proc/self/cwd; tr '\\0' '\\n' </proc/self/environ | grep ^PWD="
			for _, test := range tests {
				plain := exec.Command("/bin/sh", "-c", script)
				inside := s.Command("/bin/sh", "-c", script)
				plain.Dir, plain.Env, inside.Dir, inside.Env = test.dir, test.env, test.dir, test.env
				if want, got := pwdOf(plain.Environ()), pwdOf(inside.Environ()); !slices.Equal(got, want) {
					t.Errorf("%s: Environ has %q, os/exec's %q", test.name, got, want)
				}
				want, _ := plain.CombinedOutput()
				got, _ := inside.CombinedOutput()
				if string(got) != string(want) {
					t.Errorf("%s: %q, os/exec has %q", test.name, got, want)
				}
			}
		})
	})
}

func pwdOf(env []string) (pwd []string) {
	for _, kv := range env {
		if strings.HasPrefix(kv, "PWD=") {
			pwd = append(pwd, kv)
		}
	}
	return pwd
}

// TestKernelLayoutReports: what was promised is held, on the kernel's word.
func TestKernelLayoutReports(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			s, err := sandbox.New(sandbox.Policy{Root: &rootfs.Layout{Entries: systemEntries()}})
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.Command("true")
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			if r := cmd.Report(); !r.Held() {
				t.Errorf("\n%s", r)
			}
		})
	})
}

// TestKernelLayoutProgram: a filter from elsewhere is loaded.
func TestKernelLayoutProgram(t *testing.T) {
	kerneltest.Parallel(t)
	arch, err := seccomp.Native()
	if err != nil {
		t.Skip(err)
	}
	f := seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"mkdir", "mkdirat"}, Action: seccomp.Errno(uint16(syscall.EXDEV))}}}
	program, err := f.Compile(arch)
	if err != nil {
		t.Fatal(err)
	}
	runLayoutCases(t, []layoutCase{
		{name: "with", policy: func(p *sandbox.Policy) { p.Programs = []seccomp.Program{program} }, entries: one(func(string) rootfs.Entry { return rootfs.Tmpfs{At: "/t"} }),
			script: "mkdir /t/d 2>&1 | grep -o cross-device", want: "cross-device"},
		{name: "without", entries: one(func(string) rootfs.Entry { return rootfs.Tmpfs{At: "/t"} }), script: "mkdir /t/d && echo made", want: "made"},
	})
}
