package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _ = offer(attacks, "buses", busActs), offer(programs, "look again", lookAgain)

// busActs speak to D-Bus where a client finds it without being told
// (systemd-run --user, GHSA-27vp-2mmc-vmh3).
var busActs = []act{
	{name: "speak to the system bus", tame: true, try: reachAt("/run/dbus/system_bus_socket")},
	{name: "speak to the system bus by its older path", tame: true, try: reachAt("/var/run/dbus/system_bus_socket")},
	{name: "speak to the user's bus", tame: true, try: reachAt(userBus)},
	{name: "speak to the service manager", tame: true, try: reachAt("/run/systemd/private")},
	{name: "speak to an abstract bus", tame: true, try: func(f ground) error { return reachAt(abstractBus(f.harness))(f) }},
}

const userBus = "/run/user/1000/bus"

// abstractBus is how a session's bus is often called.
func abstractBus(pid int) string { return fmt.Sprintf("@/tmp/dbus-holdfast-%d", pid) }

// reachAt speaks to a local socket.
func reachAt(address string) func(ground) error {
	return func(ground) error { return hear("unix", address) }
}

func listenAt(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// inChildMounts says in a child that its parent has made the mounts.
const inChildMounts = "ATTACK_MOUNTS"

// ownMounts gives the calling goroutine, and what it starts from here on, a
// mount namespace of its own. It is the goroutine's last: its thread ends with it.
func ownMounts(t *testing.T) (made bool) {
	t.Helper()
	if os.Getenv(inChildMounts) != "" {
		return false
	}
	kerneltest.Need(t, kerneltest.IsRoot)
	runtime.LockOSThread()
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		t.Fatal(err)
	}
	return true
}

// serveBus listens at the buses' paths, in a /run of the test's own.
func serveBus(t *testing.T) {
	t.Helper()
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"/run/dbus/system_bus_socket", userBus, "/run/systemd/private"} {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		serveEcho(t, listenAt(t, at))
		if err := os.Chmod(at, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKernelAttackBuses(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	for _, w := range allSets {
		t.Run(w.name, func(t *testing.T) {
			w.chosen(t, allSets)
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				if ownMounts(t) {
					serveBus(t)
				}
				c := kerneltest.Child{As: as, Without: w.without, Env: []string{inChildMounts + "=1"}}
				kerneltest.InChild(t, c, func(t *testing.T) {
					if target, err := os.Readlink("/var/run"); err != nil || target != "/run" {
						t.Skipf("needs /var/run to lead to /run: %q, %v", target, err)
					}
					serveEcho(t, listenAt(t, abstractBus(os.Getpid())))
					attackPlainly(t, "buses")
					attackWith(t, "buses", w, nil)
				})
			})
		})
	}
}

// lookAgain waits for a line of input and then looks into directories.
func lookAgain(dirs []string) {
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	for _, dir := range dirs {
		names, err := os.ReadDir(dir)
		fmt.Println("sees", names, err)
		fmt.Println("writes", os.WriteFile(filepath.Join(dir, "written"), []byte("x"), 0o644))
	}
}

// What is mounted outside while a tool runs does not come into its directories,
// although mounts there are shared and the plain tool sees them.
func TestKernelAttackLaterMountsDoNotArrive(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Need(t, kerneltest.HasMountSetattr)
	for _, inside := range []bool{false, true} {
		t.Run(map[bool]string{false: "without walls", true: "in a sandbox"}[inside], func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				ownMounts(t)
				base := makeGrounds(t, 1)
				f := groundOf(base, 0, 0)
				if err := errors.Join(unix.Mount("base", base, "tmpfs", 0, "mode=0755"), unix.Mount("", base, "", unix.MS_SHARED, "")); err != nil {
					t.Fatal(err)
				}
				defer unix.Unmount(base, unix.MNT_DETACH)
				for _, dir := range []string{f.read, f.write} {
					if err := errors.Join(os.MkdirAll(dir+"/later", 0o755), os.Chmod(dir+"/later", 0o777)); err != nil {
						t.Fatal(err)
					}
				}
				said, arrived := mountLater(t, inside, as, base, []string{f.read + "/later", f.write + "/later"})
				if seen := strings.Count(said, "mounted"); inside && seen > 0 || !inside && seen != 2 {
					t.Errorf("of two mounts the tool sees %d:\n%s", seen, said)
				}
				if (arrived > 0) == inside {
					t.Errorf("the tool has written to %d mounts:\n%s", arrived, said)
				}
			})
		})
	}
}

// mountLater runs a tool, mounts something on each directory, and then lets the
// tool look. It returns what the tool says and to how many mounts it has written.
func mountLater(t *testing.T, inside bool, as kerneltest.User, base string, dirs []string) (string, int) {
	t.Helper()
	list := strings.Join(dirs, "\n")
	c := exec.Command(copyOfThis(t))
	c.Args = []string{attackTool, "harness of a looking tool", fmt.Sprint(inside), base, list}
	c.Dir = "/"
	if as == kerneltest.Ordinary {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	for dir := base; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) { // it is closed to other users
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Errorf("the tool did not start: %q", lines.Text())
	}
	for _, dir := range dirs {
		if err := errors.Join(unix.Mount("later", dir, "tmpfs", 0, "mode=0777"), os.WriteFile(dir+"/mounted", nil, 0o644)); err != nil {
			t.Error(err)
		}
	}
	fmt.Fprintln(in, "look")
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
	arrived := 0
	for _, dir := range dirs {
		if _, err := os.Stat(dir + "/written"); err == nil {
			arrived++
		}
		unix.Unmount(dir, unix.MNT_DETACH)
	}
	return said.String(), arrived
}

var _ = offer(programs, "harness of a looking tool", func(args []string) {
	t := new(testing.T)
	tool := append([]string{"look again"}, strings.Split(args[2], "\n")...)
	plain := hostileBare(t, tool...)
	plain.Stdin, plain.Stdout, plain.Stderr = os.Stdin, os.Stdout, os.Stderr
	run := plain.Run
	if args[0] == "true" {
		c := hostile(t, attackSandbox(t, attackPolicy(t, args[1], walls{}), walls{}), tool...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		run = c.Run
	}
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
})
