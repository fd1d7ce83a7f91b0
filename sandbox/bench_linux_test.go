package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/stage"
)

// The tables of internal/bench compare; these are for profiles and allocations:
//
//	go test -run '^$' -bench . ./sandbox

const benchTool = "/bin/true"

func benchSandbox(b *testing.B, rules int) *Sandbox {
	b.Helper()
	p := Workspace(b.TempDir())
	shown := b.TempDir()
	for i := range rules {
		name := filepath.Join(shown, fmt.Sprint("file", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			b.Fatal(err)
		}
		p.Files.Read = append(p.Files.Read, name)
	}
	s, err := New(p)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchRun(b *testing.B, s *Sandbox) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		c := s.Command(benchTool)
		c.Dir = "/"
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := exec.Command(benchTool).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sandbox", func(b *testing.B) { benchRun(b, benchSandbox(b, 0)) })
}

func BenchmarkRules20(b *testing.B)   { benchRun(b, benchSandbox(b, 20)) }
func BenchmarkRules1000(b *testing.B) { benchRun(b, benchSandbox(b, 1000)) }

func BenchmarkNew(b *testing.B) {
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Workspace(dir)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile is the pure part of New: from the plan to system calls.
func BenchmarkCompile(b *testing.B) {
	s := benchSandbox(b, 0)
	id := stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stage.Compile(s.ready.Plan, id); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProgram is what each command encodes and seals.
func BenchmarkProgram(b *testing.B) {
	s := benchSandbox(b, 0)
	t, err := s.ready.Template(stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}, false)
	if err != nil {
		b.Fatal(err)
	}
	run := stage.Run{Path: benchTool, Argv: []string{benchTool}, Env: os.Environ()}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.SetBytes(int64(len(t.Program(run))))
		}
	})
	b.Run("seal", func(b *testing.B) {
		program := t.Program(run)
		b.ReportAllocs()
		for b.Loop() {
			f, err := stage.Seal(program)
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}

// BenchmarkReport is one report of a run that has ended.
func BenchmarkReport(b *testing.B) {
	c := benchSandbox(b, 0).Command(benchTool)
	c.Dir = "/"
	if err := c.Run(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !c.Report().Held() {
			b.Fatal(c.Report())
		}
	}
}

// BenchmarkDefault is what a command of the default sandbox costs before its
// Start: looking at the host and, where that is as it was, no more.
func BenchmarkDefault(b *testing.B) {
	b.Chdir(b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		if a := Command(benchTool).run.Account(); a.Sandbox == nil {
			b.Fatal(a.Status)
		}
	}
}

// BenchmarkDefaultRun is such a command from its making to its end.
func BenchmarkDefaultRun(b *testing.B) {
	b.Chdir(b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		if err := Command(benchTool).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHostSockets(b *testing.B) {
	s := benchSandbox(b, 0)
	for b.Loop() {
		resolve.HostSockets(s.ready.Tree)
	}
}
