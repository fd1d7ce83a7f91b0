package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// An act is what a tool tries and must not bring about while its bound is held.
type act struct {
	bound policy.Bound
	name  string
	owned string              // what the report's Lost says if the act can go through while the bound is weaker
	try   func(s scene) error // by the tool; nil: it went through
	seen  func(s *stage) bool // by the harness afterwards: it went through; nil: the tool's word counts
}

// Texts of the report by which it owns up to an act.
const (
	ownsNames   = "all names can be seen"
	ownsModes   = "modes, owners, times"
	ownsLines   = "names and command lines can be seen"
	ownsSignals = "can be seen and signalled"
	ownsGit     = "protected names can be created"
)

// acts are all of them.
func acts() []act {
	return slices.Concat(readingActs(), writingActs(), metadataActs(), plantingActs(), procActs(), networkActs(), signalActs(), processActs(), callActs(), mountActs(), privilegeActs(), otherActs())
}

var errNotThere = errors.New("it is not there")

// reads succeeds if the file can be read and has the text.
func reads(path, text string) error {
	got, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(got, []byte(text)) {
		return errNotThere
	}
	return err
}

// there reports whether a name exists for the harness.
func there(name string) func(s *stage) bool {
	return func(s *stage) bool {
		_, err := os.Lstat(filepath.Join(filepath.Dir(s.WS), name))
		return err == nil
	}
}

func gone(name string) func(s *stage) bool {
	return func(s *stage) bool { return !there(name)(s) }
}

func readingActs() []act {
	f := func(name string, try func(s scene) error) act {
		return act{bound: policy.BoundFiles, name: name, try: try}
	}
	return []act{
		f("read a file outside", func(s scene) error { return reads(s.Outside+"/secret", secret) }),
		f("read it by a relative path", func(s scene) error { return reads("../outside/secret", secret) }),
		f("read it by a symbolic link", func(s scene) error {
			os.Symlink(s.Outside+"/secret", "link")
			return reads("link", secret)
		}),
		f("read it by /proc/self/root", func(s scene) error { return reads("/proc/self/root"+s.Outside+"/secret", secret) }),
		f("read it by /proc/self/cwd", func(scene) error { return reads("/proc/self/cwd/../outside/secret", secret) }),
		f("read it by a hard link", func(s scene) error {
			if err := os.Link(s.Outside+"/secret", "hard"); err != nil {
				return err
			}
			return reads("hard", secret)
		}),
		f("read it by the harness's root", func(s scene) error {
			return reads(fmt.Sprintf("/proc/%d/root%s/secret", s.Bystander, s.Outside), secret)
		}),
		f("read it by openat2", func(s scene) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, s.Outside+"/secret", &unix.OpenHow{Flags: unix.O_RDONLY})
			if err == nil {
				unix.Close(fd)
			}
			return err
		}),
		f("read it by execve", func(s scene) error { return run(s.Outside + "/run") }),
		f("list a directory outside", func(s scene) error { _, err := os.ReadDir(s.Outside); return err }),
		f("open a directory outside", func(s scene) error {
			fd, err := unix.Open(s.Outside, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}),
		{bound: policy.BoundFiles, name: "learn of a file outside", owned: ownsNames, try: func(s scene) error { return unix.Lstat(s.Outside+"/secret", &unix.Stat_t{}) }},
		{bound: policy.BoundFiles, name: "watch a file outside", owned: "all files watched", try: func(s scene) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.InotifyAddWatch(fd, s.Outside+"/secret", unix.IN_MODIFY)
			return err
		}},
	}
}

func writingActs() []act {
	f := func(name string, seen func(s *stage) bool, try func(s scene) error) act {
		return act{bound: policy.BoundFiles, name: name, seen: seen, try: try}
	}
	text := []byte("planted")
	return []act{
		f("make a file outside", there("outside/made"), func(s scene) error { return os.WriteFile(s.Outside+"/made", text, 0o644) }),
		f("make one by a relative path", there("outside/made2"), func(scene) error { return os.WriteFile("../outside/made2", text, 0o644) }),
		f("make one by a symbolic link", there("outside/made3"), func(s scene) error {
			os.Symlink(s.Outside, "linkdir")
			return os.WriteFile("linkdir/made3", text, 0o644)
		}),
		f("make a directory outside", there("outside/dir"), func(s scene) error { return os.Mkdir(s.Outside+"/dir", 0o755) }),
		f("make a symbolic link outside", there("outside/sym"), func(s scene) error { return os.Symlink("x", s.Outside+"/sym") }),
		f("make a FIFO outside", there("outside/fifo"), func(s scene) error { return unix.Mkfifo(s.Outside+"/fifo", 0o644) }),
		f("link a file of the workspace outside", there("outside/hard"), func(s scene) error {
			os.WriteFile("tolink", text, 0o644)
			return os.Link("tolink", s.Outside+"/hard")
		}),
		f("move a file of the workspace outside", there("outside/in"), func(s scene) error {
			os.WriteFile("tomove", text, 0o644)
			return os.Rename("tomove", s.Outside+"/in")
		}),
		f("move a file from outside", gone("outside/moved/f"), func(s scene) error { return os.Rename(s.Outside+"/moved/f", "stolen") }),
		f("remove a file outside", gone("outside/removed"), func(s scene) error { return os.Remove(s.Outside + "/removed") }),
		f("remove a directory outside", gone("outside/empty"), func(s scene) error { return unix.Rmdir(s.Outside + "/empty") }),
		f("truncate a file outside", func(s *stage) bool {
			fi, err := os.Stat(s.Outside + "/cut")
			return err != nil || fi.Size() == 0
		}, func(s scene) error { return os.Truncate(s.Outside+"/cut", 0) }),
		f("write to a file outside", func(s *stage) bool { return reads(s.Outside+"/secret", secret) != nil }, func(s scene) error {
			fd, err := unix.Open(s.Outside+"/secret", unix.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.Pwrite(fd, text, 0)
			return err
		}),
		f("make a socket outside", there("outside/bound"), func(s scene) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Bind(fd, &unix.SockaddrUnix{Name: s.Outside + "/bound"})
		}),
		f("write to the system", nil, func(scene) error {
			return touch("/usr/holdfast", "/etc/holdfast", "/holdfast", "/var/holdfast", "/dev/holdfast")
		}),
		f("write to the kernel's settings", nil, func(scene) error {
			return opensToWrite("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper")
		}),
		f("write to cgroups", nil, func(scene) error { return touch("/sys/fs/cgroup/holdfast", "/sys/fs/cgroup/pids/holdfast") }),
		f("open a device", nil, func(scene) error {
			return opensToWrite("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse", "/dev/kvm")
		}),
	}
}

// touch makes the first of some files, or says why the last could not be made.
func touch(paths ...string) (err error) {
	for _, p := range paths {
		var f *os.File
		if f, err = os.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			f.Close()
			return os.Remove(p)
		}
	}
	return err
}

func opensToWrite(paths ...string) (err error) {
	for _, p := range paths {
		var f *os.File
		if f, err = os.OpenFile(p, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			return f.Close()
		}
	}
	return err
}

func metadataActs() []act {
	f := func(name string, seen func(s *stage) bool, try func(s scene) error) act {
		return act{bound: policy.BoundFiles, name: name, owned: ownsModes, seen: seen, try: try}
	}
	stat := func(file string, is func(st unix.Stat_t) bool) func(s *stage) bool {
		return func(s *stage) bool {
			var st unix.Stat_t
			return unix.Stat(s.Outside+"/"+file, &st) != nil || is(st)
		}
	}
	return []act{
		f("change the mode of a file outside", stat("mode", func(st unix.Stat_t) bool { return st.Mode&0o777 != 0o644 }), func(s scene) error { return unix.Chmod(s.Outside+"/mode", 0o777) }),
		f("change the times of a file outside", stat("times", func(st unix.Stat_t) bool { return st.Mtim.Sec != 1_000_000_000 }), func(s scene) error {
			return unix.Utimes(s.Outside+"/times", []unix.Timeval{{Sec: 5}, {Sec: 5}})
		}),
		f("set an extended attribute outside", func(s *stage) bool {
			n, err := unix.Getxattr(s.Outside+"/secret", "user.holdfast", nil)
			return err == nil && n > 0
		}, func(s scene) error { return unix.Setxattr(s.Outside+"/secret", "user.holdfast", []byte("x"), 0) }),
		f("change the owner of a file outside", stat("mode", func(st unix.Stat_t) bool { return st.Gid == 12345 }), func(s scene) error { return unix.Chown(s.Outside+"/mode", -1, 12345) }),
	}
}

// plantingActs make in the workspace what other programs execute or obey.
func plantingActs() []act {
	f := func(name, path string, try func(s scene) error) act {
		return act{bound: policy.BoundFiles, name: name, owned: ownsGit, seen: there("ws/" + path), try: try}
	}
	write := func(p string) func(scene) error {
		return func(scene) error {
			os.MkdirAll(filepath.Dir(p), 0o755)
			return os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755)
		}
	}
	return []act{
		f("plant a hook of git", ".git/hooks/pre-commit", write(".git/hooks/pre-commit")),
		f("plant a hook by a rename", ".git/hooks/post-commit", func(s scene) error {
			write("renamed")(s)
			return os.Rename("renamed", ".git/hooks/post-commit")
		}),
		f("plant a hook by a link", ".git/hooks/pre-push", func(s scene) error {
			write("linked")(s)
			return os.Link("linked", ".git/hooks/pre-push")
		}),
		f("plant a hook by a symbolic link", ".git/hooks/pre-rebase", func(scene) error { return os.Symlink("/bin/sh", ".git/hooks/pre-rebase") }),
		f("plant a shell's startup file", ".bashrc", write(".bashrc")),
		f("plant one deep in the workspace", "a/b/.bash_profile", write("a/b/.bash_profile")),
		f("plant an editor's settings", ".vscode/tasks.json", write(".vscode/tasks.json")),
		f("plant .envrc", ".envrc", write(".envrc")),
		f("plant by openat", ".zshrc", func(scene) error {
			fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			f, err := unix.Openat(fd, ".zshrc", unix.O_CREAT|unix.O_WRONLY, 0o644)
			if err == nil {
				unix.Close(f)
			}
			return err
		}),
	}
}

func procActs() []act {
	of := func(s scene, file string) string { return fmt.Sprintf("/proc/%d/%s", s.Bystander, file) }
	return []act{
		{bound: policy.BoundProcesses, name: "see another process's command line", owned: ownsLines, try: func(s scene) error { return reads(of(s, "cmdline"), mark) }},
		{bound: policy.BoundProcesses, name: "find another process in /proc", owned: ownsLines, try: func(scene) error {
			list, err := filepath.Glob("/proc/[0-9]*/cmdline")
			if err == nil && !slices.ContainsFunc(list, func(p string) bool { return reads(p, mark) == nil }) {
				err = errNotThere
			}
			return err
		}},
		{bound: policy.BoundProcesses, name: "read another process's environment", try: func(s scene) error { return reads(of(s, "environ"), mark) }},
		{bound: policy.BoundProcesses, name: "read the harness's environment", try: func(s scene) error {
			return reads(fmt.Sprintf("/proc/%d/environ", s.Harness), tokenVariable+"=")
		}},
		{bound: policy.BoundProcesses, name: "open another process's memory", try: func(s scene) error {
			if err := foreign(s); err != nil {
				return err
			}
			return opensToWrite(of(s, "mem"))
		}},
		{bound: policy.BoundProcesses, name: "list another process's descriptors", owned: "numbers of other processes' descriptors", try: func(s scene) error {
			if err := foreign(s); err != nil {
				return err
			}
			_, err := os.ReadDir(of(s, "fd"))
			return err
		}},
	}
}

// foreign is an error if the bystander's number is that of a process inside.
func foreign(s scene) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Bystander))
	if err == nil && !strings.Contains(string(text), mark) {
		return errNotThere
	}
	return nil
}
