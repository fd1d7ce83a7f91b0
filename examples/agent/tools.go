package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A tool is something that the model can call.
type tool struct {
	about      string
	parameters string // a JSON schema
	run        func(a *agent, ctx context.Context, arguments []byte, result io.Writer) error
}

var tools = map[string]tool{
	"bash": {"Run a script. What is to go on after the call, such as a server, is started with background.",
		`{"type":"object","properties":{"script":{"type":"string"},"background":{"type":"boolean"},"port":{"type":"integer","description":"with background: wait until it listens there"}},"required":["script"]}`, with(bash)},
	"job": {"List what was started in the background; or return what one has printed, and end it. The last 256 KiB are kept while it runs, and some time after.",
		`{"type":"object","properties":{"job":{"type":"integer","description":"left out: list them"},"offset":{"type":"integer","description":"in bytes"},"wait":{"type":"string","description":"a regular expression: until it has printed this"},"end":{"type":"boolean"}}}`, with(about)},
	"read": {"Read a file.",
		`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","description":"in bytes"}},"required":["path"]}`, with(read)},
	"write": {"Write a file, and make its directories.",
		`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`, with(write)},
	"edit": {"Replace a text in a file. The old text has to be there exactly once.",
		`{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},"required":["path","old","new"]}`, with(edit)},
	"glob": {"List the files that match a pattern of *, ? and [...].",
		`{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}`, with(glob)},
}

// with decodes a call's arguments. A misspelt one is an error, so that it does not count as left out.
func with[T any](f func(*agent, context.Context, T, io.Writer) error) func(*agent, context.Context, []byte, io.Writer) error {
	return func(a *agent, ctx context.Context, arguments []byte, result io.Writer) error {
		var in T
		d := json.NewDecoder(bytes.NewReader(arguments))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return fmt.Errorf("the arguments cannot be read: %w", err)
		}
		return f(a, ctx, in, result)
	}
}

type bashCall struct {
	Script     string
	Background bool
	Port       uint16
}

func bash(a *agent, ctx context.Context, in bashCall, result io.Writer) error {
	if in.Background {
		return background(a, ctx, in, result)
	}
	cmd := a.session.CommandContext(ctx, "bash", "-c", in.Script) // ctx ends all that it has started
	cmd.WaitDelay = 3 * time.Second                               // a server that was left with "&" holds the output open
	cmd.SysProcAttr = withoutTerminal()
	shown := a.user.stream("| ")
	cmd.Stdout = io.MultiWriter(shown, result)
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	shown.flush()
	a.tellDenials(cmd, result)
	var exit *exec.ExitError
	if errors.As(err, &exit) { // the script's own failure
		fmt.Fprintf(result, "\n[%v]", exit)
		return nil
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		fmt.Fprint(result, "\n[a process goes on, and its output is lost: use background]")
		return nil
	}
	return err
}

// tellDenials shows the user and the model what the command, and the jobs, were denied, each denial once. Those of the network
// are the session's: each command's report has them all.
func (a *agent) tellDenials(cmd *sandbox.Cmd, result io.Writer) {
	for _, c := range append(a.commands(), cmd) {
		for _, v := range c.Report().Violations {
			if key := v.String(); v.Count > a.shown[key] {
				a.shown[key] = v.Count
				a.user.say("[denied] " + key)
				fmt.Fprint(result, "\n[denied] "+key)
			}
		}
	}
}

func read(a *agent, ctx context.Context, in struct {
	Path   string
	Offset int64
}, result io.Writer) error {
	f, err := a.session.Files().WithContext(ctx).OpenFile(in.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	part := io.NewSectionReader(f, in.Offset, int64(a.output))
	if _, err = io.Copy(result, part); err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Size() > in.Offset+int64(a.output) {
		fmt.Fprintf(result, "\n[the file has %d bytes; go on with offset %d]", info.Size(), in.Offset+int64(a.output))
	}
	return nil
}

func write(a *agent, ctx context.Context, in struct{ Path, Content string }, result io.Writer) error {
	files := a.session.Files().WithContext(ctx)
	if err := files.MkdirAll(filepath.Dir(in.Path), 0o777); err != nil {
		return err
	}
	if err := files.WriteFile(in.Path, []byte(in.Content), 0o666); err != nil {
		return err
	}
	_, err := fmt.Fprintf(result, "%d bytes written", len(in.Content))
	return err
}

func edit(a *agent, ctx context.Context, in struct{ Path, Old, New string }, result io.Writer) error {
	files := a.session.Files().WithContext(ctx)
	text, err := files.ReadFile(in.Path)
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(in.Old)); n != 1 || in.Old == "" {
		return fmt.Errorf("the old text is %d times in %s, not once", n, in.Path)
	}
	text = bytes.Replace(text, []byte(in.Old), []byte(in.New), 1)
	if err := files.Replace(in.Path, text); err != nil { // in one step: a server that reads it meanwhile sees either
		return err
	}
	_, err = io.WriteString(result, "replaced")
	return err
}

func glob(a *agent, ctx context.Context, in struct{ Pattern string }, result io.Writer) error {
	names, err := a.session.Files().WithContext(ctx).Glob(in.Pattern)
	if err != nil {
		return err
	}
	_, err = io.WriteString(result, strings.Join(names, "\n"))
	return err
}
