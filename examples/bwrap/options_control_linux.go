package main

import (
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

var controlRows = []row{
	{"--seccomp", 1, "FD", "Load the system call filter in FD", func(p *parser, name string, arg []string) error {
		if len(p.programs) > 0 {
			return complaint("--seccomp cannot be combined with --add-seccomp-fd")
		}
		return number(func(o *options) *int { return &o.seccompProgram })(p, name, arg)
	}},
	{"--add-seccomp-fd", 1, "FD", "Load the filter in FD, after those before", func(p *parser, _ string, arg []string) error {
		if p.seccompProgram >= 0 {
			return complaint("--add-seccomp-fd cannot be combined with --seccomp")
		}
		fd, err := descriptor(arg[0])
		if err != nil {
			return err
		}
		code, err := readProgram(fd)
		p.programs = append(p.programs, code)
		return err
	}},
	{"--block-fd", 1, "FD", "Wait before COMMAND until FD can be read", number(func(o *options) *int { return &o.block })},
	{"--userns-block-fd", 1, "FD", "Wait for the user namespace's maps until FD can be read", number(func(o *options) *int { return &o.usernsBlock })},
	{"--info-fd", 1, "FD", "Write about the sandbox to FD", number(func(o *options) *int { return &o.info })},
	{"--json-status-fd", 1, "FD", "Write about the sandbox and its end to FD", number(func(o *options) *int { return &o.jsonStatus })},
	{"--new-session", 0, "", "A terminal session of its own", flag(func(o *options) *bool { return &o.newSession }, true)},
	{"--die-with-parent", 0, "", "End when the caller ends", flag(func(o *options) *bool { return &o.dieWithParent }, true)},
	{"--as-pid-1", 0, "", "COMMAND is process 1 of its pid namespace", flag(func(o *options) *bool { return &o.asPID1 }, true)},
	{"--cap-add", 1, "CAP", "Keep a capability, or ALL", func(p *parser, _ string, arg []string) error {
		return p.capability(arg[0], func(have, named uint64) uint64 { return have | named })
	}},
	{"--cap-drop", 1, "CAP", "Drop a capability, or ALL", func(p *parser, _ string, arg []string) error {
		return p.capability(arg[0], func(have, named uint64) uint64 { return have &^ named })
	}},
	{"--share-fd", 1, "FD", "Let COMMAND have FD (not in bubblewrap)", func(p *parser, _ string, arg []string) error {
		fd, err := descriptor(arg[0])
		p.shared = append(p.shared, fd)
		return err
	}},
}

// allCapabilities has those that this program has no name for, too.
const allCapabilities = ^uint64(0)

func (p *parser) capability(name string, change func(have, named uint64) uint64) error {
	p.capsChosen = true
	if strings.EqualFold(name, "ALL") {
		p.caps = change(p.caps, allCapabilities)
		return nil
	}
	c, err := rootfs.ParseCapability(name)
	if err != nil || len(name) < 4 || !strings.EqualFold(name[:4], "cap_") {
		return complain("unknown cap: %s", name)
	}
	p.caps = change(p.caps, 1<<c)
	return nil
}

// readProgram reads a filter as the kernel has it.
func readProgram(fd int) ([]byte, error) {
	code, err := readAll(fd)
	if err != nil {
		return nil, because(err, "Can't read seccomp data")
	}
	closeFD(fd)
	if len(code)%8 != 0 {
		return nil, complaint("Invalid seccomp data, must be multiple of 8")
	}
	return code, nil
}
