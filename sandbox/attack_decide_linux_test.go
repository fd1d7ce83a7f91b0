package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _, _, _ = offer(programs, "open what is never asked about", openUnasked), offer(programs, "open at once", openAtOnce),
	offer(programs, "abuse a descriptor", abuseDescriptor), offer(programs, "open with trouble", openWithTrouble)

// openUnasked opens each path in each way, and says what gives a file of the host's. It writes to all it has.
func openUnasked(args []string) {
	for _, p := range args {
		for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_RDONLY | unix.O_DIRECTORY, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.O_TMPFILE | unix.O_RDWR} {
			if fd, err := unix.Open(p, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600); err == nil {
				b := make([]byte, 8) // in a private directory the tool can make a file of its own
				if n, _ := unix.Read(fd, b); n > 0 && string(b[:n]) == "original" {
					fmt.Printf("opened %s %#x\n", p, flags)
				}
				unix.Write(fd, []byte("ESCAPE"))
				unix.Close(fd)
			}
		}
	}
	fmt.Println("done")
}

// TestKernelAttackFilesThatDecideIsNotAskedAbout: hidden and protected names, hard links, what is no plain file, paths through links of /proc, and
// what is to be made, with a Decide that says yes to everything.
func TestKernelAttackFilesThatDecideIsNotAskedAbout(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		a := &asked{answer: always(policy.Verdict{Allow: true})}
		s, base := decidingSandbox(t, w, a, func(p *Policy, base string) {
			p.Files.HideNames = []string{".env"}
			p.Files.Read = append(p.Files.Read, filepath.Join(base, "secret", "hidden"))
			p.Files.Hide = []string{filepath.Join(base, "secret", "hidden", "file")}
			if err := os.WriteFile(p.Files.Hide[0], []byte("original\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		secret := filepath.Join(base, "secret", "0")
		args := []string{"open what is never asked about", secret + "/.env", secret + "/link", secret + "/linked", secret + "/fifo", secret + "/bare",
			secret + "/\x1b[31mred", filepath.Join(base, "secret", "hidden", "file"), "/sys/kernel/uevent_seqnum", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/1/environ", "/dev/kmsg", "/dev/zero",
			"/proc/self/root" + secret + "/.env", "/proc/self/root" + secret + "/link", secret + "/new", secret, secret + "/"} // in a private directory the tool can make the last ones
		c := hostile(t, s, args...)
		if out, err := c.CombinedOutput(); string(out) != "done\n" || err != nil {
			t.Errorf("%s%v", out, err)
		}
		if list := a.take(); len(list) > 0 {
			t.Errorf("asked %q", list)
		}
		c = hostile(t, s, "open what is never asked about", secret+"/file", secret+"/.bashrc", secret+"/bare/config")
		if out, err := c.CombinedOutput(); strings.Count(string(out), "opened") != 3 || strings.Count(string(out), " 0x0\n") != 3 || err != nil {
			t.Errorf("to be read alone: %s%v", out, err)
		}
		for _, name := range []string{".env", "link", "file", ".bashrc", "bare/config", "../hidden/file"} {
			if b, err := os.ReadFile(filepath.Join(secret, name)); string(b) != "original\n" || err != nil {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		for _, q := range a.take() {
			if !strings.HasPrefix(q, "read ") {
				t.Errorf("asked %q", q)
			}
		}
	})
}

// openAtOnce opens paths by as many threads, and prints how many of the opens succeed.
func openAtOnce(args []string) {
	var all sync.WaitGroup
	var opened atomic.Int32
	for _, p := range args {
		all.Go(func() {
			runtime.LockOSThread()
			if fd, err := unix.Open(p, unix.O_RDONLY, 0); err == nil {
				opened.Add(1)
				unix.Close(fd)
			}
		})
	}
	all.Wait()
	fmt.Println("opened", opened.Load())
}

// TestKernelAttackDecideByFloods: threads that open one file are one question; those that open many have few asked at one time, and none waits for ever.
func TestKernelAttackDecideByFloods(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		var now, most atomic.Int32
		a := &asked{answer: func(ctx context.Context, r policy.FileRequest) policy.Verdict {
			if strings.HasSuffix(r.Path, "/plain") {
				return policy.Verdict{Allow: true, For: policy.Run}
			}
			for n, was := now.Add(1), most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			<-ctx.Done()
			now.Add(-1)
			return policy.Verdict{Allow: true}
		}}
		var paths []string
		s, base := decidingSandbox(t, w, a, nil)
		same := slices.Repeat([]string{filepath.Join(base, "secret", "0", "plain")}, 8)
		c := hostile(t, s, append([]string{"open at once"}, same...)...)
		if out, err := c.CombinedOutput(); string(out) != "opened 8\n" || err != nil {
			t.Errorf("%s%v", out, err)
		}
		if list := a.take(); len(list) != 1 {
			t.Errorf("asked %q", list)
		}
		s, _ = decidingSandbox(t, w, a, func(p *Policy, base string) {
			p.Files.Patience = 200 * time.Millisecond
			for i := range 100 {
				paths = append(paths, filepath.Join(base, "secret", "0", fmt.Sprint(i)))
				if err := os.WriteFile(paths[i], nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
		c = hostile(t, s, append([]string{"open at once"}, paths...)...)
		if out, err := c.CombinedOutput(); string(out) != "opened 0\n" || err != nil {
			t.Errorf("%s%v", out, err)
		}
		if n := most.Load(); n > 32 {
			t.Errorf("%d calls at one time", n)
		}
	})
}

// abuseDescriptor tries what a descriptor must not lead to.
func abuseDescriptor(args []string) {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		fmt.Println("not opened:", err)
		return
	}
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR | unix.O_TRUNC} {
		if again, err := unix.Open(self, flags, 0); err == nil {
			if _, err := unix.Write(again, []byte("ESCAPE")); err == nil {
				fmt.Println("ESCAPE: written")
			}
		}
	}
	unix.Fchmod(fd, 0o777)
	unix.Ftruncate(fd, 0)
	unix.Fsetxattr(fd, "user.x", []byte("ESCAPE"), 0)
	unix.UtimesNanoAt(fd, "", []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0x1000)
	if err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, args[1]+"/stolen", unix.AT_SYMLINK_FOLLOW); err == nil {
		fmt.Println("ESCAPE: linked")
	}
	for _, p := range []string{self + "/..", self + "/../.env"} {
		if _, err := unix.Open(p, unix.O_RDONLY, 0); err == nil {
			fmt.Println("ESCAPE: opened", p)
		}
	}
	b := make([]byte, 100)
	n, _ := unix.Pread(fd, b, 0)
	fmt.Printf("read %s", b[:max(n, 0)])
}

// TestKernelAttackTheDescriptorThatDecideGives: to be read it is a copy, by which nothing changes outside.
func TestKernelAttackTheDescriptorThatDecideGives(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		a := &asked{answer: func(_ context.Context, r policy.FileRequest) policy.Verdict { return policy.Verdict{Allow: !r.Write} }}
		s, base := decidingSandbox(t, w, a, nil)
		file := filepath.Join(base, "secret", "0", "plain")
		var before, after unix.Stat_t
		if err := unix.Stat(file, &before); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c := hostile(t, s, "abuse a descriptor", file, filepath.Join(base, "write"))
			if out, err := c.CombinedOutput(); string(out) != "read original\n" || err != nil {
				t.Errorf("%s%v", out, err)
			}
		}
		if err := unix.Stat(file, &after); err != nil || before.Mode != after.Mode || before.Ctim != after.Ctim || before.Nlink != after.Nlink {
			t.Errorf("%v: %+v, then %+v", err, before, after)
		}
	})
}

// TestKernelAttackThePathIsSwappedWhileDecideThinks: the open gets the file that was asked about, or fails.
func TestKernelAttackThePathIsSwappedWhileDecideThinks(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		for name, swap := range map[string]func(file, other string) error{
			"another file takes its name": func(file, other string) error { return os.Rename(other, file) },
			"it is removed":               func(file, _ string) error { return os.Remove(file) },
			"a link takes its name": func(file, other string) error {
				os.Remove(file)
				return os.Symlink(other, file)
			},
			"it gets a second name": func(file, other string) error { return os.Link(file, other+".second") },
		} {
			for _, write := range []string{"", ">"} {
				a := new(asked)
				s, base := decidingSandbox(t, w, a, nil)
				file, other := filepath.Join(base, "secret", "0", "plain"), filepath.Join(base, "secret", "0", "swapped")
				a.answer = func(context.Context, policy.FileRequest) policy.Verdict {
					if err := swap(file, other); err != nil {
						t.Error(err)
					}
					return policy.Verdict{Allow: true}
				}
				c := s.Command("/bin/sh", "-c", "exec 3<"+write+`"$0"; echo opened`, file)
				c.Dir = "/"
				if out, _ := c.CombinedOutput(); strings.Contains(string(out), "opened\n") {
					t.Errorf("%s: %s", name, out)
				}
				failed := func(v Violation) bool {
					return v.Path == file && v.Rule == "Decide" && strings.HasPrefix(v.Why, "Files.Decide allowed it, but ")
				}
				if v := c.Report().Violations; !slices.ContainsFunc(v, failed) || len(a.take()) != 1 {
					t.Errorf("%s: %v", name, v)
				}
			}
		}
	})
}

// openWithTrouble opens a file in ways that the answer meets something in the way, and prints what comes of each.
func openWithTrouble(args []string) {
	kind, file, sign := args[0], args[1], args[2]
	switch kind {
	case "signals": // to the thread that waits, until the harness has seen a sign
		tid := make(chan int)
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			tid <- unix.Gettid()
			fd, err := unix.Open(file, unix.O_RDONLY, 0)
			for err == unix.EINTR {
				fd, err = unix.Open(file, unix.O_RDONLY, 0)
			}
			b := make([]byte, 8)
			n, _ := unix.Read(fd, b)
			fmt.Println(string(b[:max(n, 0)]))
			done <- err
		}()
		thread := <-tid
		for range 1000 {
			unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // the Go runtime has a handler for it
		}
		os.WriteFile(sign, nil, 0o644)
		fmt.Println(<-done)
	case "no room":
		var was unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_NOFILE, &was)
		low, _ := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(low + 1), Max: was.Max})
		for err := error(nil); err == nil; { // what is free below it
			_, err = unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		_, err := unix.Open(file, unix.O_RDONLY, 0)
		fmt.Println(err == unix.EMFILE, err)
	}
}

// TestKernelAttackDecideMeetsTrouble: signals for the thread that waits, a full table of descriptors, and a process that dies meanwhile.
func TestKernelAttackDecideMeetsTrouble(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		a := new(asked)
		s, base := decidingSandbox(t, w, a, func(p *Policy, _ string) { p.Files.Patience = time.Hour })
		file, sign := filepath.Join(base, "secret", "0", "plain"), filepath.Join(base, "write", "sign")
		seen := func(ctx context.Context) bool {
			for ctx.Err() == nil {
				if _, err := os.Stat(sign); err == nil {
					return os.Remove(sign) == nil
				}
				runtime.Gosched()
			}
			return false
		}
		a.answer = func(ctx context.Context, _ policy.FileRequest) policy.Verdict {
			return policy.Verdict{Allow: seen(ctx), For: policy.Run}
		}
		c := hostile(t, s, "open with trouble", "signals", file, sign)
		if out, err := c.CombinedOutput(); string(out) != "original\n<nil>\n" || err != nil {
			t.Errorf("signals: %q, %v", out, err)
		}
		a.answer = always(policy.Verdict{Allow: true})
		c = hostile(t, s, "open with trouble", "no room", file, sign)
		if out, err := c.CombinedOutput(); !strings.HasPrefix(string(out), "true") || err != nil {
			t.Errorf("no room: %s%v", out, err)
		}
		gone := make(chan struct{})
		a.answer = func(ctx context.Context, _ policy.FileRequest) policy.Verdict {
			if err := os.WriteFile(sign, nil, 0o644); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			close(gone)
			return policy.Verdict{Allow: true, For: policy.Sandbox}
		}
		c = s.Command("/bin/sh", "-c", `cat "$0" & while ! [ -e "$1" ]; do :; done; kill -9 $!; wait; read line; echo "$line"`, file, sign)
		c.Dir = "/"
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the shell waits until the question is given up
			<-gone
			fmt.Fprintln(in, "and on")
			in.Close()
		}()
		if out, err := c.CombinedOutput(); string(out) != "and on\n" || err != nil {
			t.Errorf("a dead process: %q, %v", out, err)
		}
	})
}
