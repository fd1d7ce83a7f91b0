package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _, _ = offer(programs, "descriptors", listDescriptors), offer(programs, "climb", climb), offer(programs, "reopen", reopen)

// listDescriptors prints what is open. The one that lists is left out.
func listDescriptors([]string) {
	for fd := range 512 {
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && !strings.Contains(to, "eventpoll") && !strings.Contains(to, "eventfd") {
			fmt.Printf("fd %d %s\n", fd, to)
		}
	}
}

// climb tries to leave by a directory that was handed in as descriptor 3.
func climb(args []string) {
	for _, name := range []string{"../../secret/0/file", "../../../../../../../../.." + args[0]} {
		fd, err := unix.Openat(3, name, unix.O_RDONLY, 0)
		fmt.Println(name, err)
		if err == nil {
			fmt.Println("ESCAPE")
			unix.Close(fd)
		}
	}
	fmt.Println("fchdir", unix.Fchdir(3))
	if err := readsSecret("../../secret/0/file"); err == nil {
		fmt.Println("ESCAPE")
	}
	if fd, err := unix.Openat(3, "file", unix.O_RDWR, 0); err == nil {
		fmt.Println("WROTE")
		unix.Close(fd)
	}
}

// reopen tries to get more of standard input than it was opened for.
func reopen([]string) {
	for _, p := range []string{"/proc/self/fd/0", "/dev/stdin", "/dev/fd/0", "/proc/thread-self/fd/0"} {
		fd, err := unix.Open(p, unix.O_RDWR, 0)
		fmt.Println(p, err)
		if err == nil {
			unix.Write(fd, []byte("spoilt"))
		}
	}
	fmt.Println(os.Chmod("/proc/self/fd/0", 0o777))
	fmt.Println(unix.Fchmod(0, 0o777))
	fmt.Println(unix.Ftruncate(0, 0))
}

func TestKernelAttackInheritedDescriptors(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		f := groundOf(base, 0, 0)
		// What a careless harness leaves open on exec, above and below the tool's.
		for _, at := range []int{3, 4, 5, 9, 10, 63, 251} {
			if _, err := unix.FcntlInt(uintptr(at), unix.F_GETFD, 0); err == nil {
				continue // in use by the test itself
			}
			fd, err := unix.Open(f.hidden(), unix.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if fd != at {
				if err := unix.Dup3(fd, at, 0); err != nil {
					t.Fatal(err)
				}
			}
			defer unix.Close(at)
		}
		if out, err := hostileBare(t, "descriptors").Output(); err != nil || !strings.Contains(string(out), f.hidden()) {
			t.Errorf("without walls nothing is inherited either: %v\n%s", err, out)
		}
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		for extra := range 3 {
			c := hostile(t, s, "descriptors")
			for range extra {
				c.ExtraFiles = append(c.ExtraFiles, os.Stdin)
			}
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for line := range strings.Lines(string(out)) {
				got = append(got, strings.Fields(line)[1])
			}
			for fd := range 3 + extra {
				want = append(want, strconv.Itoa(fd))
			}
			if !slices.Equal(got, want) || strings.Contains(string(out), f.hidden()) {
				t.Errorf("ESCAPE: with %d extra files the tool has\n%s", extra, out)
			}
		}
	})
}

// A directory handed to the tool is one of the harness's mounts: without
// Landlock nothing would keep the tool from walking up, so it is not handed
// over. With it the policy decides.
func TestKernelAttackDirectoryDescriptor(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		f := groundOf(base, 0, 0)
		dir, err := os.Open(f.read)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		plain := hostileBare(t, "climb", f.hidden())
		plain.ExtraFiles = []*os.File{dir}
		if out, err := plain.CombinedOutput(); err != nil || strings.Count(string(out), "ESCAPE") != 3 || !strings.Contains(string(out), "WROTE") {
			t.Errorf("without walls the descriptor is no way out either: %v\n%s", err, out)
		}
		c := hostile(t, attackSandbox(t, attackPolicy(t, base, w), w), "climb", f.hidden())
		c.ExtraFiles = []*os.File{dir}
		out, err := c.CombinedOutput()
		t.Logf("%v\n%s", err, out)
		if strings.Contains(string(out), "ESCAPE") || strings.Contains(string(out), "WROTE") {
			t.Error("ESCAPE: the descriptor is a way out")
		}
	})
}

// A file that is handed over open for reading can be opened anew by its link in
// /proc, in the harness's tree of mounts: Landlock alone keeps it read-only.
func TestKernelAttackStandardInput(t *testing.T) {
	kerneltest.Long(t)
	for _, place := range []string{"read", "secret"} {
		t.Run("from "+place, func(t *testing.T) {
			eachWall(t, allSets, func(t *testing.T, w walls) {
				base := makeGrounds(t, 1)
				name := filepath.Join(base, place, "0", "file")
				in, err := os.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				plain := hostileBare(t, "reopen")
				plain.Stdin = in
				out, err := plain.CombinedOutput()
				if text, readErr := os.ReadFile(name); err != nil || readErr != nil || string(text) == "original\n" {
					t.Errorf("without walls it is not written either: %v %v\n%s", err, readErr, out)
				}
				if err := os.WriteFile(name, []byte("original\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				c := hostile(t, attackSandbox(t, attackPolicy(t, base, w), w), "reopen")
				c.Stdin = in
				out, err = c.CombinedOutput()
				t.Logf("%v\n%s", err, out)
				if text, err := os.ReadFile(name); w.name != noLandlock && (err != nil || string(text) != "original\n") {
					t.Errorf("ESCAPE: what was opened for reading was written: %q, %v", text, err)
				}
			})
		})
	}
}

// The harness's directory, as a descriptor's name (CVE-2024-21626).
func TestKernelAttackWorkingDirectory(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		f := groundOf(base, 0, 0)
		fd, err := unix.Open(f.secret, unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		for _, dir := range []string{fmt.Sprintf("/proc/self/fd/%d", fd), fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), f.secret, filepath.Join(f.write, "../../secret/0")} {
			plain := hostileBare(t, "read", "file", "./file", "../0/file")
			plain.Dir = dir
			if out, err := plain.CombinedOutput(); err != nil || strings.Count(string(out), "ESCAPE") != 3 {
				t.Errorf("%s: without walls it is not entered either: %v\n%s", dir, err, out)
			}
			c := hostile(t, s, "read", "file", "./file", "../0/file")
			c.Dir = dir
			out, err := c.CombinedOutput()
			t.Logf("%s: %v\n%s", dir, err, out)
			if err == nil && strings.Contains(string(out), "ESCAPE") {
				t.Errorf("ESCAPE: %s was entered", dir)
			}
		}
	})
}
