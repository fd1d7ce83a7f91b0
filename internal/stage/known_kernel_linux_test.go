package stage

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// TestKernelNoToolRunsBeforeTheHarnessKnowsOfInit: a stage that is killed before it has said who init is leaves the harness nothing to wait for. It sleeps
// there, since its socket is full.
func TestKernelNoToolRunsBeforeTheHarnessKnowsOfInit(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprint("without namespaces: ", bare), func(t *testing.T) {
			if !bare {
				kerneltest.Need(t, kerneltest.HasUserNamespaces)
			}
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) { killUnknown(t, bare) })
			})
		})
	}
}

func killUnknown(t *testing.T, bare bool) {
	before = func(c *Control) {
		for err := error(nil); err == nil; {
			_, err = unix.SendmsgN(int(c.Child.Fd()), []byte{0}, nil, nil, unix.MSG_DONTWAIT)
		}
	}
	defer func() { before = nil }()
	path, p, processes := "/tool", walls(nil, nil), 2
	if bare {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		path, processes, p = exe, 3, plan.Plan{Steps: []plan.Step{{In: plan.Stage, Do: plan.OpenProc{}}, {In: plan.Tool, Do: plan.Chdir{}}, {In: plan.Tool, Do: plan.RestoreSignals{}}}}
	}
	i := beginAll(t, path, p, func(i *insider) {
		for asleep := 0; asleep < 100 && i.output() == ""; time.Sleep(time.Millisecond) { // for a tool that starts it is not that long
			asleep++
			if states := statesBelow(i.cmd.Process.Pid); len(states) < processes || strings.Trim(states, "S") != "" {
				asleep = 0
			}
		}
		i.cmd.Process.Kill()
	}, "ran")
	if said := i.end(); said != "" || i.c.InitPID != 0 {
		t.Errorf("the tool said %q, and the stage that init is %d", said, i.c.InitPID)
	}
}

// statesBelow returns the states of a process and of the chain of children below it.
func statesBelow(pid int) string {
	dir := fmt.Sprint("/proc/", pid)
	text, _ := os.ReadFile(dir + "/stat")
	_, state, _ := strings.Cut(string(text), ") ")
	children, _ := os.ReadFile(fmt.Sprint(dir, "/task/", pid, "/children"))
	if child := 0; len(children) > 0 {
		fmt.Sscan(string(children), &child)
		return (state + " ")[:1] + statesBelow(child)
	}
	return (state + " ")[:1]
}

func init() {
	moreTools["ran"] = func([]string) error {
		fmt.Println("ran")
		time.Sleep(time.Minute)
		return nil
	}
}
