package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// machines runs this program with -switches in virtual machines (.ci/vm), whose kernels are Debian's and Ubuntu's, and returns
// their rows of the table.
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
	if err := os.WriteFile(script, []byte("#!/bin/sh\nmkdir /srv && TMPDIR=/srv exec ./hosttest -switches -long\n"), 0o755); err != nil {
		return "", err
	}
	for _, kernel := range []string{"6.1", "6.12", "6.8-ubuntu"} {
		c := exec.Command(".ci/vm", kernel, "-v", script)
		c.Env = append(os.Environ(), "VM_USERS=root", "VM_TOOLS=git python3", "VM_TIMEOUT=1200")
		switch kernel {
		case "6.12":
			c.Env = append(c.Env, "VM_PACKAGES=lxc liblxc1 liblxc-common apparmor libapparmor1 libcap2 libseccomp2 libselinux1 libpcre2-8-0 libgcc-s1")
			if _, err := os.Stat(manager); err == nil {
				c.Env = append(c.Env, "VM_TOOLS=git python3 "+manager+" "+manager+"-shutdown")
			}
		case "6.8-ubuntu":
			c.Env = append(c.Env, "VM_PACKAGES=libc6 apparmor")
		}
		out, err := c.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf(".ci/vm %s: %w: %s", kernel, err, out)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimRight(line, "\r\n")
			switch {
			case strings.HasPrefix(line, "| ") && strings.Contains(line, "emulated"):
				rows += line + "\n"
			case strings.Contains(line, " | default: "), strings.HasPrefix(line, "not run: "):
				fmt.Println(line)
			}
		}
	}
	return rows, nil
}
