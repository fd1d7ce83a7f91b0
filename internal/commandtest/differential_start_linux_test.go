package commandtest

import (
	"os"
	"path/filepath"
	"strings"
)

const script = "#!/bin/sh\necho ran as $0 with $*\n"

// withPath runs f with another PATH.
func (w *world) withPath(path string, f func()) {
	was := os.Getenv("PATH")
	w.must(os.Setenv("PATH", path))
	defer os.Setenv("PATH", was)
	f()
}

// tool runs a tool by its name.
func tool(name string, arg ...string) func(w *world) {
	return func(w *world) { w.run(w.command(name, arg...)) }
}

// startCases are about finding the tool, its directory, and execve's answers.
var startCases = []diffCase{
	{name: "an absolute path", run: tool("/bin/echo", "a", "b c", "")},
	{name: "a name on PATH", run: tool("echo", "found")},
	{name: "a name that is not on PATH fails at Start", run: tool("no-such-tool-anywhere")},
	{name: "an empty name", run: tool("")},
	{name: "an absolute path that does not exist", run: tool("/nonexistent/tool")},
	{name: "a missing file in a shown directory", run: tool("/usr/bin/no-such-tool-anywhere")},
	{name: "a path through a file", run: tool("/etc/passwd/tool")},
	{name: "a relative path", run: func(w *world) {
		w.file("tool", script, 0o755)
		w.run(w.command("./tool", "x"))
	}},
	{name: "a relative path is relative to Dir", run: func(w *world) {
		w.must(os.Mkdir("sub", 0o755))
		w.file("sub/tool", script, 0o755)
		c := w.command("./tool", "x")
		c.Dir = "sub"
		w.run(c)
	}},
	{name: "a relative path with a relative Dir that misses it", run: func(w *world) {
		w.must(os.Mkdir("sub", 0o755))
		w.file("tool", script, 0o755)
		c := w.command("./tool", "x")
		c.Dir = "sub"
		w.run(c)
	}},
	{name: "a name found in the working directory is ErrDot", run: func(w *world) {
		w.file("dot-tool", script, 0o755)
		w.withPath(".", func() { w.run(w.command("dot-tool")) })
	}},
	{name: "a name found by an empty PATH element is ErrDot", run: func(w *world) {
		w.file("dot-tool", script, 0o755)
		w.withPath(":/bin", func() { w.run(w.command("dot-tool")) })
	}},
	{name: "ErrDot that is cleared runs", run: func(w *world) {
		w.file("dot-tool", script, 0o755)
		w.withPath(".:/usr/bin:/bin", func() {
			c := w.command("dot-tool", "x")
			w.err("Err", c.Err)
			c.Err = nil
			w.run(c)
		})
	}},
	{name: "an Err that the caller set", run: func(w *world) {
		c := w.command("/bin/true")
		c.Err = errCase
		w.run(c)
	}},
	{name: "a file that is not executable", run: func(w *world) {
		w.run(w.command(w.file("tool", script, 0o644)))
	}},
	{name: "a file that nobody may read or execute", run: func(w *world) {
		w.run(w.command(w.file("tool", script, 0)))
	}},
	{name: "a directory as tool", run: tool("/usr/bin")},
	{name: "a script without a shebang", run: func(w *world) {
		w.run(w.command(w.file("tool", "echo no shebang\n", 0o755)))
	}},
	{name: "an empty file", run: func(w *world) { w.run(w.command(w.file("tool", "", 0o755))) }},
	{name: "a binary of another architecture", run: func(w *world) {
		w.run(w.command(w.file("tool", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 200), 0o755)))
	}},
	{name: "a shebang with a missing interpreter", run: func(w *world) {
		w.run(w.command(w.file("tool", "#!/nonexistent/interpreter\n", 0o755)))
	}},
	{name: "a shebang whose interpreter is a directory", run: func(w *world) {
		w.run(w.command(w.file("tool", "#!/usr\n", 0o755)))
	}},
	{name: "a shebang with an argument", run: func(w *world) {
		w.run(w.command(w.file("tool", "#!/bin/sh -e\nfalse\necho not reached\n", 0o755)))
	}},
	{name: "a shebang with CRLF", run: func(w *world) {
		w.run(w.command(w.file("tool", "#!/bin/sh\r\necho\r\n", 0o755)))
	}},
	{name: "a symbolic link to the tool", run: func(w *world) {
		w.must(os.Symlink("/bin/echo", "link"))
		w.run(w.command(filepath.Join(w.dir, "link"), "through"))
	}},
	{name: "a symbolic link to nothing", run: func(w *world) {
		w.must(os.Symlink("/nonexistent/tool", "link"))
		w.run(w.command(filepath.Join(w.dir, "link")))
	}},
	{name: "a symbolic link to itself", run: func(w *world) {
		w.must(os.Symlink("link", "link"))
		w.run(w.command(filepath.Join(w.dir, "link")))
	}},
	{name: "a name that is too long", run: func(w *world) { w.run(w.command(filepath.Join(w.dir, strings.Repeat("n", 300)))) }},
	{name: "a path that is too long", run: tool("/" + strings.Repeat("p/", 3000))},
	{name: "a NUL byte in the path", run: tool("/bin/\x00true"), differs: nulPath("/bin/\x00true", `Args[0] = "/bin/\x00true"`)},
	{name: "a NUL byte in an argument", run: tool("/bin/echo", "a\x00b"), differs: nulPath("/bin/echo", `Args[1] = "a\x00b"`)},
	{name: "argv[0] is not the path", run: func(w *world) {
		c := w.command("/bin/bash")
		c.Args = []string{"another-name", "-c", "echo $0; tr '\\0' ' ' </proc/self/cmdline; tr '\\0' ' ' </proc/$$/cmdline"}
		w.run(c)
	}},
	{name: "no Args at all", run: func(w *world) {
		c := w.command("/bin/pwd")
		c.Args = nil
		w.run(c)
	}, differs: noArgs("String", "/bin/pwd")},
	{name: "empty Args", run: func(w *world) {
		c := w.command("/bin/pwd")
		c.Args = []string{}
		w.run(c)
	}, differs: noArgs("String", "/bin/pwd")},
	{name: "a Path that is changed after Command", run: func(w *world) {
		c := w.command("/bin/false", "x")
		*c.path = "/bin/echo"
		w.run(c)
	}},
	{name: "a Path that is emptied", run: func(w *world) {
		c := w.command("/bin/true", "x")
		*c.path = ""
		w.run(c)
	}},
	{name: "an argument list that is too long", run: func(w *world) {
		w.run(w.command("/bin/true", strings.Split(strings.Repeat("0123456789abcdef ", 1<<18), " ")...))
	}},
	{name: "one argument that is too long", run: tool("/bin/true", strings.Repeat("x", 1<<18))},
	{name: "an environment that is too long", run: func(w *world) {
		c := w.command("/bin/true")
		for i := range 1 << 15 {
			c.Env = append(c.Env, "V"+strings.Repeat("x", 200)+string(rune('A'+i%26))+strings.Repeat("y", i%977)+"=1")
		}
		w.run(c)
	}},
	{name: "a large argument list that fits", run: func(w *world) {
		w.run(w.sh("echo $#", strings.Split(strings.Repeat("0123456789abcdef ", 1<<14), " ")...))
	}},
	{name: "Dir that does not exist", run: inDir("/nonexistent/dir")},
	{name: "Dir that is a file", run: inDir("/etc/passwd")},
	{name: "Dir through a file", run: inDir("/etc/passwd/dir")},
	{name: "Dir with a NUL byte", run: inDir("/\x00"), differs: nulEnv(`Dir = "/\x00"`)},
	{name: "Dir that is relative and missing", run: inDir("missing")},
	{name: "Dir that is missing and a tool that is missing", run: func(w *world) {
		c := w.command("/nonexistent/tool")
		c.Dir = "/nonexistent/dir"
		w.run(c)
	}},
	{name: "Dir that is relative", run: func(w *world) {
		w.must(os.Mkdir("sub", 0o755))
		inDir("sub")(w)
	}},
	{name: "Dir through a symbolic link", run: func(w *world) {
		w.must(os.Mkdir("sub", 0o755))
		w.must(os.Symlink("sub", "link"))
		inDir(filepath.Join(w.dir, "link"))(w)
	}},
	{name: "Dir that may not be entered", run: func(w *world) {
		w.must(os.Mkdir("sub", 0))
		w.must(os.Chmod("sub", 0))
		c := w.sh("echo in; cd .. && echo out")
		c.Dir = "sub"
		w.run(c)
	}, root: starts("capabilities", "<nil>", exitedWell, "in\nout\n", "chdir sub: permission denied", "*fs.PathError",
		diff{"capabilities", "Start, PathError", absent, "chdir sub"}, diff{"capabilities", "Start, is EACCES", absent, "true"},
		diff{"capabilities", "Start, is fs.ErrPermission", absent, "true"})},
	{name: "Start twice", run: func(w *world) {
		c := w.command("/bin/true")
		w.must(c.Start())
		w.err("Start again", c.Start())
		w.err("Wait", c.Wait())
		w.err("Start after Wait", c.Start())
		w.state(c)
	}},
	{name: "Start again after a Start that failed", run: func(w *world) {
		c := w.command(w.file("tool", "", 0o755))
		w.err("Start", c.Start())
		w.err("Start again", c.Start())
		w.err("Wait", c.Wait())
		w.state(c)
	}},
	{name: "Wait twice", run: func(w *world) {
		c := w.sh("exit 3")
		w.must(c.Start())
		w.err("Wait", c.Wait())
		w.err("Wait again", c.Wait())
		w.state(c)
	}},
	{name: "Wait before Start", run: func(w *world) {
		c := w.command("/bin/true")
		w.err("Wait", c.Wait())
		w.state(c)
	}},
	{name: "Run of a missing tool", run: func(w *world) {
		c := w.command("/nonexistent/tool")
		w.err("Run", c.Run())
		w.state(c)
	}},
	{name: "Output of a tool that cannot be executed", run: func(w *world) {
		c := w.command(w.file("tool", "", 0o755))
		out, err := c.Output()
		w.saw("output is nil", out == nil)
		w.err("Output", err)
		w.state(c)
	}},
	{name: "CombinedOutput of a tool that cannot be executed", run: func(w *world) {
		c := w.command(w.file("tool", "", 0o755))
		out, err := c.CombinedOutput()
		w.saw("output is nil", out == nil)
		w.err("CombinedOutput", err)
		w.state(c)
	}},
	{name: "String before Start", run: func(w *world) {
		w.saw("found", stringOf(w.command("echo", "a", "b c")))
		w.saw("not found", stringOf(w.command("no-such-tool-anywhere", "a")))
		c := w.command("echo", "a")
		c.Args = nil
		w.saw("without Args", stringOf(c))
	}, differs: noArgs("without Args", "/usr/bin/echo")},
}

// inDir runs pwd in a directory, and prints what the shell believes.
func inDir(dir string) func(w *world) {
	return func(w *world) {
		c := w.sh("pwd -P; pwd -L; env | grep ^PWD=")
		c.Dir = dir
		w.run(c)
	}
}

// nul are the differences of a NUL byte that os/exec's own message m does not
// name.
func nul(m, field string) []diff {
	return []diff{{"nul", "Start", m, "sandbox: policy: " + field + ": contains a NUL byte: invalid argument (remove it)"}}
}

// nulPath is the same where os/exec fails with EINVAL on a path.
func nulPath(path, field string) []diff {
	return append(nul("fork/exec "+path+": invalid argument", field),
		diff{"nul", "Start, type", "*fs.PathError", "*policy.PolicyError"}, diff{"nul", "Start, PathError", "fork/exec " + path, absent})
}

// nulEnv is the same where os/exec finds it in the environment.
func nulEnv(field string) []diff {
	return append(nul("exec: environment variable contains NUL", field),
		diff{"nul", "Start, type", "*errors.errorString", "*policy.PolicyError"}, diff{"nul", "Start, is EINVAL", absent, "true"})
}

// noArgs is the difference of a command whose String os/exec cannot make.
func noArgs(key, path string) []diff { return []diff{{"string", key, "(panics)", path}} }

// starts are the differences of a command that os/exec starts, to this end and
// output, and a sandbox refuses with this error.
func starts(which, end, state, stdout, message, kind string, more ...diff) []diff {
	return append([]diff{
		{which, "Process is nil", "false", "true"}, {which, "ProcessState is nil", "false", "true"}, {which, "Start leaves the fields alone", "true", absent},
		{which, "the state's pid is the process's", "true", absent}, {which, "usage is there", "true", absent}, {which, "stdout", stdout, ""},
		{which, "Wait", end, absent}, {which, "state", state, absent}, {which, "Start", "<nil>", message}, {which, "Start, type", absent, kind},
	}, more...)
}

const exitedWell = "exit status 0; code 0 success true exited true; signalled false by signal -1; core false; status 0x0"
