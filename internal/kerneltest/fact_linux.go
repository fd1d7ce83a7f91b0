package kerneltest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Need skips the test unless every fact holds, naming the first that does not.
// Where the variable CI is "true" it fails the test instead, if this kernel,
// by its version, must have what is missing. In a child it asks in the body
// alone: before it, where the parent has asked already, it does nothing.
func Need(t testing.TB, facts ...Fact) {
	t.Helper()
	var taken []Feature
	if inside != nil {
		if !inside.running {
			return
		}
		taken = inside.Without
	}
	for _, f := range facts {
		err := f.Check()
		if err == nil {
			continue
		}
		kernel, versionErr := Kernel()
		if versionErr != nil {
			t.Fatal(versionErr)
		}
		if !excused(f, ciEnvironment(kernel, taken)) {
			t.Fatalf("needs %s, which kernel %v in CI must have: %v", f.Name, kernel, err)
		}
		t.Skipf("needs %s: %v", f.Name, err)
	}
}

// Kernel returns the version of the running kernel.
func Kernel() (Version, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Version{}, fmt.Errorf("kerneltest: uname: %w", err)
	}
	return parseRelease(string(u.Release[:bytes.IndexByte(u.Release[:], 0)]))
}

func parseRelease(release string) (Version, error) {
	var v Version
	if _, err := fmt.Sscanf(release, "%d.%d", &v.Major, &v.Minor); err != nil {
		return Version{}, fmt.Errorf("kerneltest: kernel release %q: %w", release, err)
	}
	return v, nil
}

// IsRoot is the fact that the test process is root in the initial user
// namespace or in its own. CI may lack it.
var IsRoot = Fact{Name: "root", Check: func() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("the user id is %d", uid)
	}
	return nil
}}

// IsOrdinary is the fact that the test process is not root.
var IsOrdinary = Fact{Name: "an ordinary user", Check: func() error {
	if os.Geteuid() == 0 {
		return errors.New("the user id is 0")
	}
	return nil
}}

// noTest has a test binary run no test.
const noTest = "-test.run=^$"

// HasUserNamespaces is the fact that this user can make a user namespace and
// map its own ids into it.
var HasUserNamespaces = Fact{
	Name:     "user namespaces",
	Since:    Version{3, 8}, // user_namespaces(7)
	Features: []Feature{UserNamespaces, UserNamespaceCalls, MoreUserNamespaces, Namespaces, Clone3},
	Check: func() error {
		// A test binary that is to run no test ends at once.
		cmd := exec.Command("/proc/self/exe", noTest)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		return cmd.Run()
	},
}

// HasSeccompFilter is the fact that the kernel knows seccomp(2) and its filters.
var HasSeccompFilter = Fact{
	Name:     "seccomp filters",
	Since:    Version{3, 17},
	Features: []Feature{SeccompFilter},
	Check: func() error {
		// A null program is an address fault wherever filters are known.
		_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
		if errno != unix.EFAULT {
			return fmt.Errorf("seccomp: %w", errno)
		}
		return nil
	},
}

// HasMountSetattr is the fact that the kernel has the mount API up to mount_setattr(2).
var HasMountSetattr = Fact{
	Name:     "mount_setattr",
	Since:    Version{5, 12},
	Features: []Feature{Mounts, MountAPI, MountSetattr},
	Check: func() error {
		// A size of 0 is invalid wherever the call is known.
		_, _, errno := unix.RawSyscall6(unix.SYS_MOUNT_SETATTR, 0, 0, 0, 0, 0, 0)
		if errno != unix.EINVAL {
			return fmt.Errorf("mount_setattr: %w", errno)
		}
		return nil
	},
}

// landlockSince holds the kernel that brought each ABI from 1 (landlock(7), "Versions").
var landlockSince = []Version{{5, 13}, {5, 19}, {6, 2}, {6, 7}, {6, 10}, {6, 12}, {6, 15}}

// LandlockABI is the fact that Landlock is on, with at least the given ABI.
func LandlockABI(abi int) Fact {
	f := Fact{
		Name:     fmt.Sprintf("Landlock ABI %d", abi),
		Features: []Feature{Landlock, LandlockAtBoot},
		Check: func() error {
			have, err := landlockABI()
			if err == nil && have < abi {
				err = fmt.Errorf("the kernel has ABI %d", have)
			}
			return err
		},
	}
	if abi >= 1 && abi <= len(landlockSince) {
		f.Since = landlockSince[abi-1]
	}
	return f
}

func landlockABI() (int, error) {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	return int(abi), nil
}
