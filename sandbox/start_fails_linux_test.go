package sandbox

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelAStartFailsWhileItsContextEnds: os/exec's goroutine of the context reads the fields of a Cmd whose Start is failing, in which
// Start may write none of them (-race), and a reader that blocks does not hold Start up.
func TestKernelAStartFailsWhileItsContextEnds(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		dir := realTemp(t)
		tool := filepath.Join(dir, "tool")
		if err := os.WriteFile(tool, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := Workspace(dir)
		p.May = w.may
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range kerneltest.Amount(t, 5, 40, 40) {
			ctx, cancel := context.WithCancel(context.Background())
			cmd := s.CommandContext(ctx, tool)
			reader, end := io.Pipe()
			cmd.Stdin = reader
			time.AfterFunc(time.Duration(i)*500*time.Microsecond, cancel)
			err := cmd.Start()
			end.Close()
			if err == nil { // the context ended first, which Wait tells, as os/exec's does
				if err := cmd.Wait(); err == nil {
					t.Error("a tool that cannot be executed ended well")
				}
			} else if cmd.Process != nil || cmd.ProcessState != nil || cmd.WaitDelay != 0 {
				t.Errorf("the fields are not those of a failed Start: %+v %+v %v", cmd.Process, cmd.ProcessState, cmd.WaitDelay)
			}
			cancel()
		}
	})
}
