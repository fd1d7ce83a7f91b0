package sandbox

import (
	"fmt"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "type into a terminal", typeInto)

// typeInto types into the terminal that is its input, as the user would.
func typeInto([]string) {
	for _, c := range []byte("typed\n") {
		if err := rawCall(unix.SYS_IOCTL, 0, high|unix.TIOCSTI, pointerTo(&c)); err != nil {
			fmt.Println("refused:", err)
			return
		}
	}
	fmt.Println("typed")
}

// TestKernelAttackTheInputOfATerminal: a tool that is given a terminal types there what the user's shell obeys when the harness has ended.
func TestKernelAttackTheInputOfATerminal(t *testing.T) {
	eachWall(t, append(allSets[:len(allSets):len(allSets)], unscoped...), func(t *testing.T, w walls) {
		signal.Ignore(unix.SIGHUP)
		_, tools := terminal(t)
		if err := unix.IoctlSetInt(int(tools.Fd()), unix.TIOCSCTTY, 0); err != nil {
			t.Fatal(err)
		}
		plain := hostileBare(t, "type into a terminal")
		plain.Stdin = tools
		if out, err := plain.Output(); string(out) == "refused: "+unix.EIO.Error()+"\n" {
			t.Skip("needs TIOCSTI: dev.tty.legacy_tiocsti is 0")
		} else if err != nil || string(out) != "typed\n" {
			t.Fatalf("without a sandbox: %s, %v", out, err)
		}
		c := hostile(t, attackSandbox(t, attackPolicy(t, "", w), w), "type into a terminal")
		c.Stdin = tools
		if out, err := c.Output(); err != nil || string(out) != "refused: "+unix.EPERM.Error()+"\n" {
			t.Errorf("ESCAPE: %s, %v", out, err)
		}
	})
}
