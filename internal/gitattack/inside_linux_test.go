package gitattack

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// sandboxed makes the sandbox that the tool runs in.
type sandboxed func(ws string) (*sandbox.Sandbox, error)

// workspace is the default sandbox, which shows this program too.
func workspace(change func(*sandbox.Policy)) sandboxed {
	return func(ws string) (*sandbox.Sandbox, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p := sandbox.Workspace(ws)
		p.Files.Read = append(p.Files.Read, exe)
		if change != nil {
			change(&p)
		}
		return sandbox.New(p)
	}
}

// inside has the tool carry out the operations in a sandbox.
func (r *runner) inside(ops []op) {
	r.t.Helper()
	text, err := json.Marshal(ops)
	if err != nil {
		r.t.Fatal(err)
	}
	c := r.command(toolName)
	c.Stdin = bytes.NewReader(text)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	stop := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() }) // a deep tree makes each call slow
	defer stop.Stop()
	if err := c.Wait(); err != nil {
		r.t.Logf("the tool: %v\n%s", err, clip(out.Bytes()))
	}
	r.tally.ops += len(ops)
	r.tally.done += strings.Count(out.String(), ": ok\n")
	r.said = out.String()
}
