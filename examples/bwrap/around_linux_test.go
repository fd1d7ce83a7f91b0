package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelWaitsForMaps: somebody else writes the maps of the user namespace.
func TestKernelWaitsForMaps(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			info, infoIn := pipe(t)
			blockOut, block := pipe(t)
			cmd := bwrap("--unshare-user", "--info-fd", "3", "--userns-block-fd", "4", "--ro-bind", "/", "/", "sh", "-c", "id -u; id -g")
			cmd.ExtraFiles = []*os.File{infoIn, blockOut}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			infoIn.Close()
			var first map[string]int
			if err := json.NewDecoder(info).Decode(&first); err != nil {
				t.Fatal(err)
			}
			for _, f := range [][2]string{{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("42 %d 1", os.Getuid())}, {"gid_map", fmt.Sprintf("43 %d 1", os.Getgid())}} {
				if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", first["child-pid"], f[0]), []byte(f[1]), 0); err != nil {
					t.Error(err)
				}
			}
			block.Write([]byte{1})
			if err := cmd.Wait(); err != nil || out.String() != "42\n43\n" {
				t.Errorf("%v %q", err, &out)
			}
		})
	})
}

// TestKernelEntersASecondUserNamespace: the root is built in one, and the command
// runs in another below it.
func TestKernelEntersASecondUserNamespace(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			// unshare stays outside of the second one, whose only process says when it is there.
			holder := exec.Command("unshare", "-r", "sh", "-c", "echo $$; exec unshare -r sh -c 'echo ready; read line'")
			in, err1 := holder.StdinPipe()
			out, err2 := holder.StdoutPipe()
			if err1 != nil || err2 != nil || holder.Start() != nil {
				t.Fatal(err1, err2)
			}
			var pid int
			var ready string
			if _, err := fmt.Fscan(out, &pid, &ready); err != nil {
				t.Fatal(err)
			}
			second, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
			if err != nil {
				t.Fatal(err)
			}
			first, err := parentNamespace(second)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
			cmd := bwrap("--userns", "3", "--userns2", "4", "--bind", "/", "/", "readlink", "/proc/self/ns/user")
			cmd.ExtraFiles = []*os.File{first, second}
			text, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(text)) != want {
				t.Errorf("%v %s, want %s", err, text, want)
			}
			in.Close()
			holder.Wait()
		})
	})
}

// TestKernelLateMountsStayOutside: what is mounted below a source once the
// sandbox runs does not appear in it, writable or not. The mounts are made in a
// mount namespace of the test's own.
func TestKernelLateMountsStayOutside(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		dir := t.TempDir()
		const script = `set -e
mount -t tmpfs outer "$1"; mount --make-shared "$1"; mkdir "$1/sub"; mkfifo "$1/go" "$1/there"
"$2" --ro-bind / / --dev /dev --ro-bind "$1" /mnt sh -c 'echo >/dev/null; read x </mnt/go; touch /mnt/sub/late 2>/dev/null && echo written; ls /mnt/sub' &
mount -t tmpfs inner "$1/sub"; touch "$1/sub/outside"
echo >"$1/go"; wait`
		cmd := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", dir, program(t))
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "written") {
			t.Errorf("%v %s", err, out)
		}
	})
}

// program is a file that is this program under any name.
func program(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := t.TempDir() + "/bwrap"
	text := "#!/bin/bash\nexec -a " + beBwrap + " " + exe + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}

// TestKernelSyncDescriptorStaysOpen: until the sandbox is empty, and not in the
// command.
func TestKernelSyncDescriptorStaysOpen(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			r, w := pipe(t)
			cmd := bwrap(slices.Concat(all, []string{"--sync-fd", "3", "sh", "-c", "ls /proc/self/fd | wc -l; read line"})...)
			cmd.ExtraFiles = []*os.File{w}
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err1 != nil || err2 != nil || cmd.Start() != nil {
				t.Fatal(err1, err2)
			}
			w.Close()
			var n int
			if fmt.Fscan(out, &n); n != 4 { // ls has the directory open
				t.Errorf("the command has %d descriptors", n)
			}
			p := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
			if n, _ := unix.Poll(p, 0); n != 0 {
				t.Errorf("it is closed while the command runs: %#x", p[0].Revents)
			}
			in.Close()
			cmd.Wait()
			if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("read %d, %v", n, err)
			}
		})
	})
}

// TestKernelDescriptorsStayOutside: what the caller has left open is not the
// command's, but for what it is given by name.
func TestKernelDescriptorsStayOutside(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, shared := range []bool{false, true} {
				r, w := pipe(t)
				args, want := []string{}, "refused\n"
				if shared {
					args, want = []string{"--share-fd", "4"}, "shared\n"
				}
				cmd := bwrap(slices.Concat(all, args, []string{"bash", "-c", "(echo x >&4) 2>/dev/null && echo shared || echo refused; (echo >&3) 2>/dev/null && echo leaked"})...)
				cmd.ExtraFiles = []*os.File{r, w}
				out, _ := cmd.Output()
				if string(out) != want {
					t.Errorf("shared %v: %q", shared, out)
				}
			}
		})
	})
}
