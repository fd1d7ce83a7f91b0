package commandtest

import (
	"bufio"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

// attr runs a script with process attributes.
func attr(script string, a syscall.SysProcAttr) func(w *world) {
	return func(w *world) {
		c := w.sh(script)
		c.SysProcAttr = &a
		w.run(c)
		w.saw("the attributes are the caller's", c.SysProcAttr == &a)
	}
}

// leads prints how the tool's process group and session stand to its pid.
const leads = `read -r pid comm state ppid pgrp session tty tpgid rest </proc/self/stat
[ $pid = $pgrp ] && echo leads its group; [ $pid = $session ] && echo leads its session; [ $tty = 0 ] && echo no terminal; exit 0`

// onTerminal runs a script on a new terminal.
func onTerminal(script string, change func(c *command, tty *os.File)) func(w *world) {
	return func(w *world) {
		master, tty, err := pty.Open()
		w.must(err)
		defer master.Close()
		c := w.sh(script)
		c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
		change(c, tty)
		err = c.Start()
		w.err("Start", err)
		tty.Close()
		if err != nil {
			return
		}
		var out strings.Builder
		for lines := bufio.NewScanner(master); lines.Scan(); { // ends with EIO
			out.WriteString(lines.Text() + "\n")
		}
		w.err("Wait", c.Wait())
		w.saw("terminal", out.String())
	}
}

// withIgnored has a signal ignored while f runs.
func withIgnored(sig os.Signal, f func()) {
	signal.Ignore(sig)
	defer signal.Reset(sig)
	f()
}

func asRootOnly(f func(w *world)) func(w *world) {
	return func(w *world) {
		if os.Geteuid() == 0 {
			f(w)
		}
	}
}

const nobody = 65534

// attributeCases are about SysProcAttr and what else a process inherits.
var attributeCases = []diffCase{
	{name: "no attributes", run: func(w *world) { w.run(w.sh(leads)) }},
	{name: "Setpgid", run: attr("exec "+leadsTool, syscall.SysProcAttr{Setpgid: true}), differs: outside},
	{name: "Setsid", run: attr("exec "+leadsTool, syscall.SysProcAttr{Setsid: true}), differs: outside},
	{name: "Setpgid to a group that is not there", run: attr("true", syscall.SysProcAttr{Setpgid: true, Pgid: 1 << 22})},
	{name: "Setctty without Setsid", run: attr("true", syscall.SysProcAttr{Setctty: true, Ctty: 0})},
	{name: "Setctty and Foreground", run: attr("true", syscall.SysProcAttr{Setctty: true, Setsid: true, Foreground: true})},
	{name: "Ctty of no descriptor", run: attr("true", syscall.SysProcAttr{Setctty: true, Setsid: true, Ctty: 99})},
	{name: "Ctty of no terminal", run: attr("true", syscall.SysProcAttr{Setctty: true, Setsid: true, Ctty: 0})},
	{name: "Foreground without a terminal", run: attr("true", syscall.SysProcAttr{Foreground: true, Ctty: 0})},
	{name: "a controlling terminal", run: onTerminal("echo words >/dev/tty; tty -s && echo a terminal; stty size", func(c *command, tty *os.File) {
		pty.Setsize(tty, &pty.Winsize{Rows: 33, Cols: 99})
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	})},
	{name: "a controlling terminal by Ctty", run: onTerminal("exec </dev/null; echo words >/dev/tty", func(c *command, tty *os.File) {
		c.Stdin, c.ExtraFiles = nil, []*os.File{tty}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	})},
	{name: "a terminal that does not control", run: onTerminal("", func(c *command, tty *os.File) {
		*c.path, c.Args = "/usr/bin/perl", []string{"perl", "-e", `print open(my $f, ">", "/dev/tty") ? "controlling" : "not controlling"`}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	})},
	{name: "Noctty", run: onTerminal("(echo words >/dev/tty) 2>/dev/null || echo not controlling", func(c *command, tty *os.File) {
		c.SysProcAttr = &syscall.SysProcAttr{Noctty: true}
	})},
	{name: "job control on a terminal", run: onTerminal(`set -m; bash -c "exit 5"; echo $?
perl -MPOSIX -e 'print tcgetpgrp(0) == getpgrp() ? "foreground\n" : "background\n"'
perl -MPOSIX -e 'print tcgetpgrp(0) == getpgrp() ? "foreground\n" : "background\n"' & wait`, func(c *command, tty *os.File) {
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	})},
	{name: "Pdeathsig", run: attr("echo words", syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})},
	{name: "Credential that is one's own", run: func(w *world) {
		c := w.sh("id -u; id -g")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true}}
		w.run(c)
	}},
	{name: "Credential of nobody", run: asRootOnly(attr("id -u; id -g; id -G; exit 4", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}))},
	{name: "Credential that may not be taken", run: func(w *world) {
		if os.Geteuid() != 0 {
			attr("true", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}})(w)
		}
	}},
	{name: "the user and groups", run: func(w *world) { w.run(w.sh("id -u; id -g")) }},
	{name: "umask", run: func(w *world) {
		was := syscall.Umask(0o027)
		defer syscall.Umask(was)
		w.run(w.sh("umask; touch made; stat -c %a made"))
	}},
	{name: "nice", run: func(w *world) { w.run(w.sh("nice; nice -n 5 nice")) }},
	{name: "a signal that the harness ignores", run: func(w *world) {
		withIgnored(syscall.SIGUSR1, func() { w.run(w.sh("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; kill -USR1 $$; echo alive")) })
	}},
	{name: "a signal that the harness catches", run: func(w *world) {
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGUSR2)
		defer signal.Stop(ch)
		w.run(w.sh("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; kill -USR2 $$; echo not alive"))
	}},
	{name: "signals by default", run: func(w *world) {
		w.run(w.command("/bin/grep", "-E", "^Sig(Blk|Ign|Cgt|Pnd)|^ShdPnd", "/proc/self/status"))
	}},
	{name: "the working directory that was removed", run: func(w *world) {
		w.must(os.Mkdir("gone", 0o755))
		w.must(os.Chdir("gone"))
		defer os.Chdir(w.dir)
		w.must(os.Remove(w.dir + "/gone"))
		w.run(w.sh("echo ran 2>/dev/null"))
	}, differs: starts("cwd", "<nil>", exitedWell, "ran\n", "getwd: no such file or directory", "*os.SyscallError",
		diff{"cwd", "Start, SyscallError", absent, "getwd"}, diff{"cwd", "Start, is ENOENT", absent, "true"}, diff{"cwd", "Start, is fs.ErrNotExist", absent, "true"},
		diff{"cwd", "stderr", "shell-init: error retrieving current directory: getcwd: cannot access parent directories: No such file or directory\n", ""})},
	{name: "the working directory that was moved", run: func(w *world) {
		w.must(os.Mkdir("one", 0o755))
		w.must(os.Chdir("one"))
		defer os.Chdir(w.dir)
		w.must(os.Rename(w.dir+"/one", w.dir+"/two"))
		w.run(w.sh("pwd -P"))
	}},
}

// leadsTool prints its pid's relation to its group and session, with no other
// process in between.
const leadsTool = `perl -e 'print getpgrp(0) == $$ ? "leads" : "does not lead", " its group, which is ", getpgrp(0) ? "visible" : "outside", "\n"'`

var outside = []diff{{"pid", "stdout", "leads its group, which is visible\n", "does not lead its group, which is outside\n"}}
