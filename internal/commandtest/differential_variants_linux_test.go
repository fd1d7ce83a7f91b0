package commandtest

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// A wrappedCmd is wrapped when it is started, after everything that its caller does
// with it, or by newWrapped.
type wrappedCmd struct {
	*exec.Cmd
	s *sandbox.Sandbox
}

func (c *wrappedCmd) wrap() error {
	if sandbox.ReportOf(c.Cmd) != nil {
		return nil // before: os/exec says what is wrong now
	}
	return c.s.Wrap(c.Cmd)
}

func (c *wrappedCmd) Start() error {
	if err := c.wrap(); err != nil {
		return err
	}
	return c.Cmd.Start()
}

func (c *wrappedCmd) Run() error {
	if err := c.wrap(); err != nil {
		return err
	}
	return c.Cmd.Run()
}

func (c *wrappedCmd) Output() ([]byte, error) {
	if err := c.wrap(); err != nil {
		return nil, err
	}
	return c.Cmd.Output()
}

func (c *wrappedCmd) CombinedOutput() ([]byte, error) {
	if err := c.wrap(); err != nil {
		return nil, err
	}
	return c.Cmd.CombinedOutput()
}

// variants are the ways to a sandbox by way of os/exec's own methods.
func variants(s *sandbox.Sandbox) map[string]maker {
	plain := func(ctx context.Context, name string, arg []string) *exec.Cmd {
		if ctx == nil {
			return exec.Command(name, arg...)
		}
		return exec.CommandContext(ctx, name, arg...)
	}
	return map[string]maker{
		"embedded": func(ctx context.Context, name string, arg []string) *command {
			c := boxedCommand(s)(ctx, name, arg)
			c.do = c.Cmd
			return c
		},
		"wrapped late": func(ctx context.Context, name string, arg []string) *command {
			c := plain(ctx, name, arg)
			return &command{Cmd: c, do: &wrappedCmd{c, s}, path: &c.Path}
		},
	}
}

// of the stage's path, which an embedded or wrapped Cmd has, these are observations.
var ofStagesPath = map[string]bool{"String": true, "found": true, "not found": true, "without Args": true, "field Path": true, "field Path was": true, "Start leaves the fields alone": true}

// TestKernelDifferentialOfEmbeddedAndWrapped runs the table through os/exec's own
// methods, on a command whose process enters a sandbox.
func TestKernelDifferentialOfEmbeddedAndWrapped(t *testing.T) {
	kerneltest.Heavy(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 5 * time.Minute}, func(t *testing.T) {
			dir := openDir(t)
			plainEnvironment(t)
			s, err := sandbox.New(toolPolicy(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			warm(t, s)
			for name, m := range variants(s) {
				for _, c := range slices.Concat(startCases, stdioCases) {
					t.Run(name+"/"+c.name, func(t *testing.T) { compareVariant(t, dir, c, m) })
				}
			}
		})
	})
}

// compareVariant holds what a command of os/exec's own observes against what the
// same methods observe when it enters a sandbox.
func compareVariant(t *testing.T, dir string, c diffCase, m maker) {
	plain := observe(t, dir, c, plainCommand)
	boxed := observe(t, dir, c, m)
	known := map[string]bool{}
	for _, d := range append(c.differs, c.root...) {
		known[d.key] = true
		known["stderr"] = known["stderr"] || d.which == "capabilities" // the stage says there what this type's Start returns
	}
	for k, p := range plain {
		if b := valueOf(boxed, k); p != b && !known[k] && !ofStagesPath[k] && k != cancelSet.key {
			t.Errorf("%s: %s:\n os/exec %s\n sandbox %s", c.name, k, clip(p), clip(b))
		}
	}
}
