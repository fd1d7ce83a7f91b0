package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "litter", func(args []string) {
	if err := fixture.Litter(os.Getenv("HOME"), os.Getenv("ATTACK_OUTSIDE"), litterDepth); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("made")
	io.Copy(io.Discard, os.Stdin)
})

const litterDepth, litterDescriptors = 700, 400

// TestKernelAttackTheRemovalOfAnOwnDirectory: without namespaces HOME is a directory of the harness's TMPDIR, which a tool fills with what cannot be removed
// with a descriptor for each level, or by the permissions that it has. It is gone however the run ends, and nothing outside has changed.
func TestKernelAttackTheRemovalOfAnOwnDirectory(t *testing.T) {
	kerneltest.Long(t)
	withoutNamespaces(t, 6, func(t *testing.T) {
		home := os.Getenv("HOME")
		outside, tmp := filepath.Join(home, "outside"), filepath.Join(home, "tmp")
		for _, dir := range []string{outside, tmp, filepath.Join(outside, "kept")} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("TMPDIR", tmp)
		t.Setenv("ATTACK_OUTSIDE", outside)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: litterDescriptors, Max: litterDescriptors}); err != nil {
			t.Fatal(err)
		}
		for name, end := range map[string]func(c *Cmd, input io.Closer){
			"the tool ends":       func(_ *Cmd, input io.Closer) { input.Close() },
			"the stage is killed": func(c *Cmd, _ io.Closer) { c.Process.Kill() },
		} {
			t.Run(name, func(t *testing.T) {
				exe, _ := os.Executable()
				c := attackSandbox(t, attackPolicy(t, "", unscopedNone), unscopedNone).Command(exe)
				c.Args, c.Dir = []string{attackTool, "litter"}, "/"
				input, err := c.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				output, err := c.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				line := make([]byte, 200)
				n, _ := output.Read(line)
				if string(line[:n]) != "made\n" {
					t.Errorf("the tool: %q", line[:n])
				}
				if list, err := os.ReadDir(tmp); err != nil || len(list) != 1 {
					t.Errorf("while the tool lives: %v, %v", list, err)
				}
				end(c, input)
				c.Wait()
				if list, err := os.ReadDir(tmp); err != nil || len(list) != 0 {
					t.Errorf("left: %v, %v", list, err)
				}
				if info, err := os.Stat(filepath.Join(outside, "kept")); err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("outside: %v, %v", info, err)
				}
			})
		}
	})
}

var unscopedNone = walls{may: allSets[3].may}
