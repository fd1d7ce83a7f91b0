package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// tell makes the command's hooks of the descriptors that tell and wait.
func (o *options) tell(cmd *sandbox.Cmd) {
	if o.info >= 0 || o.jsonStatus >= 0 || o.usernsBlock >= 0 {
		cmd.Born = o.born
	}
	if o.block >= 0 {
		cmd.Built = func(int) error { return wait(o.block) }
	}
}

// born says who the sandbox's first process is, before it has done anything.
func (o *options) born(pid int) error {
	namespaces := o.namespaceNumbers(pid)
	if o.info >= 0 {
		text := fmt.Sprintf("{\n    \"child-pid\": %d%s\n}\n", pid, strings.Join(append([]string{""}, namespaces...), ",\n    "))
		if _, err := write(o.info, text); err != nil {
			return because(err, "Write to info_fd")
		}
		closeFD(o.info)
	}
	if o.jsonStatus >= 0 {
		text := fmt.Sprintf("{ \"child-pid\": %d%s }\n", pid, strings.Join(append([]string{""}, namespaces...), ", "))
		if _, err := write(o.jsonStatus, text); err != nil {
			return because(err, "Write to info_fd")
		}
	}
	if o.usernsBlock >= 0 {
		return wait(o.usernsBlock)
	}
	return nil
}

func write(fd int, text string) (int, error) {
	if err := inherited(fd); err != nil {
		return 0, err
	}
	return rawFD(fd).Write([]byte(text))
}

// namespaceNumbers are the inodes of the namespaces that are new. The user
// namespace is none of them: there may be a second one yet.
func (o *options) namespaceNumbers(pid int) (list []string) {
	for _, n := range []struct {
		name string
		own  bool
	}{{"cgroup", o.cgroup}, {"ipc", o.ipc}, {"mnt", true}, {"net", o.net}, {"pid", o.pid}, {"uts", o.uts}} {
		if !n.own {
			continue
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d/ns/%s", pid, n.name))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			list = append(list, fmt.Sprintf("%q: %d", n.name+"-namespace", stat.Ino))
		}
	}
	return list
}

// tellEnd says how the command has ended.
func (o *options) tellEnd(status int) {
	if o.jsonStatus >= 0 {
		write(o.jsonStatus, fmt.Sprintf("{ \"exit-code\": %d }\n", status)) // an error: the reader has ended
		closeFD(o.jsonStatus)
	}
}

// wait returns when a byte or the end comes. A descriptor that cannot be read
// has nothing to wait for.
func wait(fd int) error {
	if inherited(fd) == nil {
		var b [1]byte
		rawFD(fd).Read(b[:])
		closeFD(fd)
	}
	return nil
}
