package main

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// A row is one option.
type row struct {
	name  string
	takes int    // how many words follow
	words string // what they are, for the usage
	help  string
	do    func(p *parser, name string, arg []string) error
}

func find(name string) *row {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// missing is the complaint about words that do not follow.
func (r *row) missing() error {
	switch {
	case r.name == "--ro-bind-fd":
		return complaint("--bind-fd takes two arguments")
	case r.takes == 3:
		return complain("%s takes three arguments", r.name)
	case r.takes == 2:
		return complain("%s takes two arguments", r.name)
	case r.name == "--argv0", r.name == "--chdir", r.name == "--remount-ro":
		return complain("%s takes one argument", r.name)
	}
	return complain("%s takes an argument", r.name)
}

func (p *parser) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s [OPTIONS...] [--] COMMAND [ARGS...]\n\n", p.name)
	for _, r := range table {
		fmt.Fprintf(&b, "    %-28s %s\n", strings.TrimSpace(r.name+" "+r.words), r.help)
	}
	return b.String()
}

// table has every option. It is filled in init, since --help prints it.
var table []row

func init() {
	table = append(table, general...)
	table = append(table, namespaceRows...)
	table = append(table, environmentRows...)
	table = append(table, fileRows...)
	table = append(table, controlRows...)
}

var general = []row{
	{"--help", 0, "", "Print this text", func(p *parser, _ string, _ []string) error { return &wantsText{p.usage(), os.Stdout, 0} }},
	{"--version", 0, "", "Print the version", func(*parser, string, []string) error { return &wantsText{version + "\n", os.Stdout, 0} }},
	{"--args", 1, "FD", "Read further options from FD, each ended by a NUL", func(p *parser, _ string, arg []string) error {
		fd, err := descriptor(arg[0])
		if err != nil {
			return err
		}
		return p.file(fd)
	}},
	{"--argv0", 1, "VALUE", "Give COMMAND the name VALUE as its argv[0]", func(p *parser, name string, arg []string) error {
		if p.argv0 != nil {
			return complaint("--argv0 used multiple times")
		}
		p.argv0 = &arg[0]
		return nil
	}},
	{"--level-prefix", 0, "", "Begin diagnostics with a level such as <3>", func(p *parser, _ string, _ []string) error {
		p.say.levels = true
		return nil
	}},
}

// flag sets what the address points to.
func flag(address func(o *options) *bool, value bool) func(*parser, string, []string) error {
	return func(p *parser, _ string, _ []string) error {
		*address(&p.options) = value
		return nil
	}
}

// number files a descriptor of which the last counts.
func number(address func(o *options) *int) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		p.last(name)
		fd, err := descriptor(arg[0])
		*address(&p.options) = fd
		return err
	}
}

// last warns at the second use of an option.
func (p *parser) last(name string) {
	if p.shown[name] {
		p.say.onlyLast(name)
	}
	p.shown[name] = true
}

var namespaceRows = []row{
	{"--unshare-all", 0, "", "New namespaces of every kind", func(p *parser, _ string, _ []string) error {
		o := &p.options
		o.userTry, o.ipc, o.pid, o.net, o.uts, o.cgroupTry = true, true, true, true, true, true
		return nil
	}},
	{"--share-net", 0, "", "Keep the network after all (after --unshare-all)", flag(func(o *options) *bool { return &o.net }, false)},
	{"--unshare-user", 0, "", "New user namespace (implied for an ordinary user)", flag(func(o *options) *bool { return &o.user }, true)},
	{"--unshare-user-try", 0, "", "The same where the kernel has them", flag(func(o *options) *bool { return &o.userTry }, true)},
	{"--unshare-ipc", 0, "", "New ipc namespace", flag(func(o *options) *bool { return &o.ipc }, true)},
	{"--unshare-pid", 0, "", "New pid namespace", flag(func(o *options) *bool { return &o.pid }, true)},
	{"--unshare-net", 0, "", "New network namespace with a loopback", flag(func(o *options) *bool { return &o.net }, true)},
	{"--unshare-uts", 0, "", "New uts namespace", flag(func(o *options) *bool { return &o.uts }, true)},
	{"--unshare-cgroup", 0, "", "New cgroup namespace", flag(func(o *options) *bool { return &o.cgroup }, true)},
	{"--unshare-cgroup-try", 0, "", "The same where the kernel has them", flag(func(o *options) *bool { return &o.cgroupTry }, true)},
	{"--userns", 1, "FD", "Join this user namespace", number(func(o *options) *int { return &o.userns })},
	{"--userns2", 1, "FD", "Enter this user namespace once the root is built", number(func(o *options) *int { return &o.userns2 })},
	{"--disable-userns", 0, "", "No further user namespaces inside", flag(func(o *options) *bool { return &o.noUsers }, true)},
	{"--assert-userns-disabled", 0, "", "Fail if further user namespaces can be made inside", flag(func(o *options) *bool { return &o.checkNoUsers }, true)},
	{"--pidns", 1, "FD", "Join this pid namespace, or make a new one in it", number(func(o *options) *int { return &o.pidns })},
	{"--uid", 1, "UID", "The user inside", id("uid", func(o *options) *int { return &o.uid })},
	{"--gid", 1, "GID", "The group inside", id("gid", func(o *options) *int { return &o.gid })},
	{"--hostname", 1, "NAME", "The host's name inside", func(p *parser, name string, arg []string) error {
		p.last(name)
		p.hostname = &arg[0]
		return nil
	}},
}

func id(kind string, address func(o *options) *int) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		p.last(name)
		n, ok := decimal(arg[0])
		if !ok {
			return complain("Invalid %s: %s", kind, arg[0])
		}
		*address(&p.options) = n
		return nil
	}
}

// decimal reads a number as strtol(3) does, from 0 to the largest int of C.
func decimal(s string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	return int(n), err == nil && n >= 0 && n <= math.MaxInt32
}

func descriptor(s string) (int, error) {
	fd, ok := decimal(s)
	if !ok {
		return -1, complain("Invalid fd: %s", s)
	}
	return fd, nil
}

var environmentRows = []row{
	{"--chdir", 1, "DIR", "Start in DIR", func(p *parser, name string, arg []string) error {
		p.last(name)
		p.chdir = &arg[0]
		return nil
	}},
	{"--clearenv", 0, "", "Empty the environment", func(p *parser, _ string, _ []string) error {
		p.environ.clear()
		return nil
	}},
	{"--setenv", 2, "VAR VALUE", "Set a variable", func(p *parser, _ string, arg []string) error {
		if err := p.environ.set(arg[0], arg[1]); err != nil {
			return because(err, "setenv failed")
		}
		return nil
	}},
	{"--unsetenv", 1, "VAR", "Remove a variable", func(p *parser, _ string, arg []string) error {
		if err := p.environ.unset(arg[0]); err != nil {
			return because(err, "unsetenv failed")
		}
		return nil
	}},
	{"--lock-file", 1, "DEST", "Hold a read lock on DEST while the sandbox runs", func(p *parser, _ string, arg []string) error {
		p.locks = append(p.locks, arg[0])
		return nil
	}},
	{"--sync-fd", 1, "FD", "Keep FD open while the sandbox runs", number(func(o *options) *int { return &o.sync })},
}

// inside makes a destination a clean absolute path of the new root.
func inside(dest string) string { return path.Clean("/" + dest) }

// mode takes the value of --perms, if there is one.
func (p *parser) mode(standard int) fs.FileMode {
	bits := standard
	if p.perms >= 0 {
		bits = p.perms
	}
	p.perms = -1
	return fileMode(bits)
}

// fileMode is a mode in Go's terms.
func fileMode(bits int) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	if bits&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if bits&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if bits&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	if m == 0 {
		return rootfs.NoAccess
	}
	return m
}

func octal(s string) (int, bool) {
	n, err := strconv.ParseUint(strings.TrimLeft(s, " \t\n\v\f\r"), 8, 32)
	return int(n), err == nil && n <= 0o7777
}
