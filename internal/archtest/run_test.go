package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// preparedRun counts the module's functions, and their files, that the harness passes through from
// sandbox.Sandbox.Command to the end of sandbox.Cmd.Run, where the sandbox has run a command before. What it measures
// is a program that is built with counters (go.dev/doc/build-cover). Where this machine cannot hold the program's
// policy nothing is measured.
func preparedRun(t *testing.T) []figure {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=./...", "-o", program, "./internal/archtest/testdata/preparedrun")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The limits leave room for what differs from machine to machine, and user to user.
	var figures []figure
	for _, run := range []struct {
		name             string
		args             []string
		functions, files int
	}{
		{"a prepared Run", nil, 102, 28},
		{"a prepared Run with Network.Explain", []string{"explain"}, 108, 30},
	} {
		var made [3]string
		for i, name := range []string{"workspace", "counters", "unused"} {
			made[i] = filepath.Join(dir, name+strings.Join(run.args, ""))
			if err := os.Mkdir(made[i], 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command(program, append(made[:2:2], run.args...)...)
		c.Env = append(os.Environ(), "GOCOVERDIR="+made[2]) // where such a program writes at its end
		if out, err := c.CombinedOutput(); err != nil {
			t.Logf("%s is not measured: %v: %s", run.name, err, out)
			continue
		}
		functions, in := passed(t, made[1])
		if len(functions) > run.functions {
			t.Logf("%s:\n%s", run.name, strings.Join(functions, "\n"))
		}
		figures = append(figures, figure{"functions of " + run.name, len(functions), run.functions, run.functions},
			figure{"files of " + run.name, in, run.files, run.files})
	}
	return figures
}

// passed lists the functions that counters name, and counts their files. A function in which nothing was counted is not
// among them.
func passed(t *testing.T, counters string) (functions []string, in int) {
	t.Helper()
	out, err := exec.Command("go", "tool", "covdata", "func", "-i="+counters).Output()
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // FILE:LINE: FUNCTION SHARE
		if len(fields) != 3 || fields[2] == "0.0%" || strings.Contains(line, "/testdata/") || fields[0] == "total" {
			continue
		}
		at := strings.TrimPrefix(fields[0], module+"/")
		functions = append(functions, at+" "+fields[1])
		file, _, _ := strings.Cut(at, ":")
		where[file] = true
	}
	if len(functions) == 0 {
		t.Errorf("the counters in %s name no function", counters)
	}
	return functions, len(where)
}
