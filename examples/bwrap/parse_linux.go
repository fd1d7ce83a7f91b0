package main

import (
	"bytes"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// options are what a command line says. Descriptors that are not given are -1.
type options struct {
	name string // what this program was called as

	argv0, chdir, hostname *string
	steps                  []step
	locks                  []string
	command                []string

	user, userTry, pid, ipc, net, uts, cgroup, cgroupTry bool
	noUsers, checkNoUsers                                bool
	newSession, dieWithParent, asPID1                    bool
	uid, gid                                             int

	userns, userns2, pidns                                     int
	sync, block, usernsBlock, info, jsonStatus, seccompProgram int
	shared                                                     []int
	programs                                                   [][]byte
	caps                                                       uint64
	capsChosen                                                 bool
}

// A step is one file system option, in the order of the command line.
type step struct {
	option string
	entry  rootfs.Entry
	source string // as it was written
	dest   string // as it was written
	fd     int    // its data or its file; -1: it has none
}

// A parser goes through one command line and the files of arguments in it.
type parser struct {
	options
	say    *speaker
	total  int
	inFile bool

	perms   int    // of the next step that takes them; -1: none
	size    uint64 // of the next tmpfs; 0: none
	layers  []string
	shown   map[string]bool // options of which the last counts, met already
	isRoot  bool
	environ environment
}

// environment is what --setenv and its kin change as they are met.
type environment interface {
	set(name, value string) error
	unset(name string) error
	clear()
}

type ownEnvironment struct{}

func (ownEnvironment) set(name, value string) error { return os.Setenv(name, value) }
func (ownEnvironment) unset(name string) error {
	if name == "" || bytes.IndexByte([]byte(name), '=') >= 0 {
		return os.Setenv(name, "") // the same complaint
	}
	return os.Unsetenv(name)
}
func (ownEnvironment) clear() { os.Clearenv() }

// mostArguments is how many there may be on the command line and in all files
// of arguments.
const mostArguments = 9000

func newParser(name string, say *speaker, root bool) *parser {
	p := &parser{say: say, perms: -1, shown: map[string]bool{}, isRoot: root, environ: ownEnvironment{}}
	p.options = options{
		name: name, uid: -1, gid: -1, userns: -1, userns2: -1, pidns: -1, sync: -1, block: -1, usernsBlock: -1,
		info: -1, jsonStatus: -1, seccompProgram: -1,
	}
	return p
}

// parse reads a command line. It opens nothing but the descriptors of --args and
// --add-seccomp-fd, and changes nothing but the environment.
func parse(args []string, name string, say *speaker) (*options, error) {
	p := newParser(name, say, os.Getuid() == 0)
	if p.isRoot {
		p.caps = ownCapabilities()
	}
	return p.parse(args)
}

func (p *parser) parse(args []string) (*options, error) {
	if len(args) == 0 {
		return nil, &wantsText{p.usage(), os.Stderr, 1}
	}
	p.total = len(args)
	if p.total > mostArguments {
		return nil, errTooMany
	}
	rest, err := p.all(args)
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if len(rest) == 0 {
		return nil, &wantsText{p.usage(), os.Stderr, 1}
	}
	p.command = rest
	return &p.options, p.checkLast()
}

var errTooMany = complain("Exceeded maximum number of arguments %d", mostArguments)

// all goes through options up to the first word that is none.
func (p *parser) all(args []string) (rest []string, err error) {
	for len(args) > 0 {
		name := args[0]
		if name == "--" {
			return args[1:], p.leftOver("--")
		}
		row := find(name)
		if row == nil {
			if len(name) > 0 && name[0] == '-' {
				return nil, complain("Unknown option %s", name)
			}
			break
		}
		if len(args)-1 < row.takes {
			return nil, row.missing()
		}
		if err := row.do(p, name, args[1:1+row.takes]); err != nil {
			return nil, err
		}
		if err := p.leftOver(name); err != nil {
			return nil, err
		}
		args = args[1+row.takes:]
	}
	if len(p.layers) > 0 {
		return nil, errLayers
	}
	return args, nil
}

var errLayers = complaint("--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay")

// leftOver refuses an option after a modifier that is none of those it is for.
func (p *parser) leftOver(name string) error {
	modifier := name == "--perms" || name == "--size"
	switch {
	case !modifier && p.perms >= 0:
		return complaint("--perms must be followed by an option that creates a file")
	case !modifier && p.size != 0:
		return complaint("--size must be followed by --tmpfs")
	case name != "--overlay-src" && len(p.layers) > 0:
		return errLayers
	}
	return nil
}

// file reads the arguments in a descriptor, each ended by a zero byte.
func (p *parser) file(fd int) error {
	if p.inFile {
		return complaint("--args not supported in arguments file")
	}
	data, err := readAll(fd)
	if err != nil {
		return because(err, "Can't read --args data")
	}
	closeFD(fd)
	var args []string
	for len(data) > 0 {
		arg, rest, _ := bytes.Cut(data, []byte{0})
		args, data = append(args, string(arg)), rest
		if p.total++; p.total > mostArguments {
			return errTooMany
		}
	}
	p.inFile = true
	_, err = p.all(args) // a word that is no option ends them
	p.inFile = false
	return err
}

// check refuses what does not go together.
func (p *parser) check() error {
	o := &p.options
	switch {
	case o.usernsBlock >= 0 && !o.user:
		return complaint("--userns-block-fd requires --unshare-user")
	case o.usernsBlock >= 0 && o.info < 0:
		return complaint("--userns-block-fd requires --info-fd")
	case o.userns >= 0 && o.user:
		return complaint("--userns not compatible --unshare-user")
	case o.userns >= 0 && o.userTry:
		return complaint("--userns not compatible --unshare-user-try")
	case o.noUsers && !o.user:
		return complaint("--disable-userns requires --unshare-user")
	case o.noUsers && o.usernsBlock >= 0:
		return complaint("--disable-userns is not compatible with  --userns-block-fd")
	}
	return nil
}

// checkLast refuses what takes a namespace that is not asked for.
func (p *parser) checkLast() error {
	o := &p.options
	o.user = o.user || !p.isRoot && o.userns < 0 || o.userTry && usersPossible()
	o.cgroup = o.cgroup || o.cgroupTry && exists("/proc/self/ns/cgroup")
	uid, gid := os.Getuid(), os.Getgid()
	if o.uid < 0 {
		o.uid = uid
	}
	if o.gid < 0 {
		o.gid = gid
	}
	ownIDs := o.user || o.userns >= 0
	switch {
	case !ownIDs && o.uid != uid:
		return complaint("Specifying --uid requires --unshare-user or --userns")
	case !ownIDs && o.gid != gid:
		return complaint("Specifying --gid requires --unshare-user or --userns")
	case !o.uts && o.hostname != nil:
		return complaint("Specifying --hostname requires --unshare-uts")
	case o.asPID1 && !o.pid:
		return complaint("Specifying --as-pid-1 requires --unshare-pid")
	case o.asPID1 && len(o.locks) > 0:
		return complaint("Specifying --as-pid-1 and --lock-file is not permitted")
	}
	return nil
}

// usersPossible reports whether --unshare-user-try tries.
func usersPossible() bool {
	if !exists("/proc/self/ns/user") {
		return false
	}
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	return err != nil || string(text) != "0\n"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
