package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A machine is a virtual one (.ci/vm), on which this program runs with -switches.
type machine struct {
	kernel, only    string // only: the hosts whose name begins so
	tools, packages string // of this machine, and Debian's, to take along
}

const lxcPackages = "liblxc1 liblxc-common apparmor libapparmor1 libcap2 libseccomp2 libselinux1 libpcre2-8-0 libgcc-s1"

func machineList() []machine {
	services := ""
	if _, err := os.Stat(manager); err == nil {
		services = manager + " " + manager + "-shutdown"
	}
	return []machine{
		{"6.1", "", "", ""},
		{"6.12", "", services, "lxc " + lxcPackages},
		{"6.12", "LXD", "tar", lxcPackages + " lxd lxd-client lxcfs libfuse3-3 libraft2 libdqlite0 libuv1 liblz4-1 libsqlite3-0 libacl1 libattr1 libudev1 attr" +
			" rsync libpopt0 libxxhash0 libssl3 squashfs-tools liblzo2-2 xz-utils liblzma5 libzstd1 zlib1g libc6"}, // LXD's daemon looks for its tools when it starts
		{"6.8-ubuntu", "", "", "libc6 apparmor"},
	}
}

// machines runs the machines, whose kernels are Debian's and Ubuntu's, each though another has failed, and returns their rows of the table.
func machines() (rows string, err error) {
	dir, err := os.MkdirTemp("", "holdfast-hosts-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "switches")
	work := script + ".d" // where the script is started
	if err := os.CopyFS(filepath.Join(work, profiles), os.DirFS(profiles)); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(work, "hosttest"), "./internal/hosttest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the machines have no libc of this one's
	if _, err := output(build); err != nil {
		return "", err
	}
	var failed []error
	for _, m := range machineList() {
		if err := os.WriteFile(script, []byte("#!/bin/sh\nmkdir /srv && TMPDIR=/srv exec ./hosttest -switches -long -only '"+m.only+"'\n"), 0o755); err != nil {
			return "", err
		}
		c := exec.Command(".ci/vm", m.kernel, "-v", script)
		c.Env = append(os.Environ(), "VM_USERS=root", "VM_TOOLS=git python3 "+m.tools, "VM_PACKAGES="+m.packages, "VM_TIMEOUT=1200")
		out, err := c.CombinedOutput()
		if err != nil {
			failed = append(failed, fmt.Errorf(".ci/vm %s %s: %w: %s", m.kernel, m.only, err, out))
		}
		rows += reported(string(out))
	}
	return rows, errors.Join(failed...)
}

// reported prints what a machine says of its hosts, and returns their rows of the table.
func reported(console string) (rows string) {
	for line := range strings.Lines(console) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "| ") && strings.Contains(line, "emulated"):
			rows += line + "\n"
		case strings.Contains(line, " | default: "), strings.HasPrefix(line, "not run: "), strings.HasPrefix(line, "asked once more: "):
			fmt.Println(line)
		}
	}
	return rows
}
