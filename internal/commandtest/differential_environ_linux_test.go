package commandtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// withEnv runs a tool that prints its environment, which is env.
func withEnv(env []string, change ...func(c *command)) func(w *world) {
	return func(w *world) {
		c := w.command("/bin/bash", "-c", "/usr/bin/env | LC_ALL=C sort")
		c.Env = env
		for _, f := range change {
			f(c)
		}
		w.saw("Environ", strings.Join(slices.Sorted(slices.Values(c.Environ())), "\n"))
		w.run(c)
	}
}

// environCases are about the environment.
var environCases = []diffCase{
	{name: "a nil Env is the harness's environment", run: func(w *world) {
		w.must(os.Setenv("HOLDFAST_CASE", "a value"))
		defer os.Unsetenv("HOLDFAST_CASE")
		withEnv(nil)(w)
	}},
	{name: "an empty Env is empty", run: withEnv([]string{})},
	{name: "an Env of its own", run: withEnv([]string{"A=1", "B=two words", "C="})},
	{name: "the harness's environment and more", run: func(w *world) {
		w.must(os.Setenv("HOLDFAST_CASE", "a value"))
		defer os.Unsetenv("HOLDFAST_CASE")
		withEnv(append(os.Environ(), "X=1", "LANG=C"))(w)
	}},
	{name: "a secret of the harness's in an Env of its own", run: func(w *world) {
		w.must(os.Setenv("GITHUB_TOKEN", "t"))
		defer os.Unsetenv("GITHUB_TOKEN")
		c := w.command("/bin/bash", "-c", `echo "${GITHUB_TOKEN-no token}, $X"`)
		c.Env = append(os.Environ(), "X=1")
		w.run(c)
	}, differs: []diff{{"env", "stdout", "t, 1\n", "no token, 1\n"}}},
	{name: "the last of duplicates wins", run: withEnv([]string{"A=1", "B=2", "A=3", "B=", "C=4"})},
	{name: "entries without an equals sign", run: withEnv([]string{"A=1", "bare", "", "=odd", "=C:=x", "bare"})},
	{name: "an Env with a NUL byte", run: withEnv([]string{"A=1", "B=x\x00y", "C=2"}), differs: nulEnv("Env[1]")},
	{name: "secrets that the caller sets", run: withEnv([]string{"GITHUB_TOKEN=t", "LD_LIBRARY_PATH=/x", "BASH_ENV=/y"})},
	{name: "a variable with newlines and bytes that are no UTF-8", run: withEnv([]string{"A=x\ny\xff\xfe"})},
	{name: "a nil Env and a Dir set PWD", run: withEnv(nil, func(c *command) { c.Dir = "/usr" })},
	{name: "an Env of its own and a Dir leave PWD alone", run: withEnv([]string{"PWD=/here", "A=1"}, func(c *command) { c.Dir = "/usr" })},
	{name: "an Env without PWD and a Dir do not make one", run: withEnv([]string{"A=1"}, func(c *command) { c.Dir = "/usr" })},
	{name: "PWD keeps the symbolic link of Dir", run: func(w *world) {
		w.must(os.Mkdir("sub", 0o755))
		w.must(os.Symlink("sub", "link"))
		withEnv(nil, func(c *command) { c.Dir = filepath.Join(w.dir, "link") })(w)
	}},
	{name: "PWD of a relative Dir", run: func(w *world) {
		w.must(os.MkdirAll("a/b", 0o755))
		withEnv(nil, func(c *command) { c.Dir = "a/../a/b" })(w)
	}},
	{name: "PATH of the command does not look up the tool", run: func(w *world) {
		c := w.command("env")
		c.Env = []string{"PATH=/nonexistent"}
		w.run(c)
	}},
	{name: "Environ is a copy", run: func(w *world) {
		c := w.command("/usr/bin/env")
		c.Env = []string{"A=1"}
		c.Environ()[0] = "A=2"
		w.run(c)
	}},
}
