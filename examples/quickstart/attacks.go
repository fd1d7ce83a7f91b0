package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An attack is something that must not come off.
type attack struct {
	bound  sandbox.Bound
	owned  []string // the report's words, where the bound is weaker, for what lets the attack through
	name   string
	needs  string // a program that not each system has
	script string
	// damage looks at what the script printed and at the world, and says what has
	// happened; "": nothing.
	damage func(out string) string
}

func attacks(w *world) []attack {
	hook := filepath.Join(w.workspace, ".git", "hooks", "pre-commit")
	planted := filepath.Join(w.outside, "planted")
	names, net := []string{"protected names can be created"}, []string{"/proc is the machine's"}
	return []attack{
		{policy.BoundFiles, nil, "read a private key", "", fmt.Sprintf(`cat %q`, w.secret), w.keyIn},
		{policy.BoundFiles, nil, "read it through a symbolic link", "", fmt.Sprintf(`ln -sf %q key && cat key`, w.secret), w.keyIn},
		{policy.BoundFiles, nil, "read it through /proc", "", fmt.Sprintf(`for p in /proc/[0-9]*; do cat $p/root%q; done`, w.secret), w.keyIn},
		{policy.BoundEnvironment, nil, "read a key from the environment", "grep", `env | grep QUICKSTART || echo there is no such variable`, w.keyIn},
		{policy.BoundFiles, nil, "write outside the workspace", "", fmt.Sprintf(`echo planted >%q`, planted), exists(planted)},
		{policy.BoundFiles, nil, "write outside by a hard link", "", fmt.Sprintf(`ln %q here && echo planted >>here`, w.secret), w.keyChanged},
		{policy.BoundFiles, names, "plant a git hook", "", `mkdir -p .git/hooks && printf '#!/bin/sh\nid\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`, exists(hook)},
		{policy.BoundFiles, names, "move a git hook into place", "", `mkdir -p .git/x && echo id >.git/x/pre-commit && mv .git/x .git/hooks`, exists(hook)},
		{policy.BoundFiles, names, "make git run a program", "git", `git config core.fsmonitor "touch /tmp/ran"`, w.gitRuns},
		{policy.BoundFiles, names, "plant an editor's task", "", `mkdir -p .vscode && echo '{}' >.vscode/tasks.json`, exists(filepath.Join(w.workspace, ".vscode"))},
		{policy.BoundNetwork, nil, "connect to the harness's server", "", fmt.Sprintf(`cat </dev/tcp/127.0.0.1/%s`, w.port), w.keyIn},
		{policy.BoundFiles, net, "find a network interface", "grep", `tail -n +3 /proc/net/dev | grep -v '^ *lo:' && echo GAINED || echo there is only lo`, gained},
		{policy.BoundProcesses, []string{"other processes"}, "see a process of the host", "grep", fmt.Sprintf(`cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -x '[%s]%s' || echo it is not there`, w.mark[:1], w.mark[1:]), seen(w.mark)},
		{policy.BoundProcesses, []string{"signalled"}, "kill a process of the host", "", fmt.Sprintf(`kill -9 %d`, w.victim.Process.Pid), w.killed},
		{policy.BoundProcesses, []string{"outlive"}, "leave a process behind", "setsid", `setsid bash -c 'exec -a ` + w.mark + `-orphan sleep 1000' >/dev/null 2>&1 & echo it is started`, w.orphans},
		{policy.BoundPrivileges, nil, "become root in a user namespace", "unshare", `unshare --user --map-root-user echo GAINED`, gained},
		{policy.BoundPrivileges, nil, "become root by a setuid program", "setpriv", `setpriv --dump | grep -qx 'no_new_privs: 1' && echo no program can give a right here || echo GAINED`, gained},
		{policy.BoundPrivileges, nil, "become another user", "setpriv", `setpriv --reuid 1 --regid 1 --clear-groups echo GAINED`, gained},
		{policy.BoundFiles, nil, "change a setting of the kernel", "", `v=$(cat /proc/sys/kernel/domainname) && echo "$v" >/proc/sys/kernel/domainname && echo GAINED`, gained},
		{policy.BoundFiles, nil, "read the password file", "", `cat /etc/shadow && echo GAINED`, gained},
	}
}

func (w *world) keyIn(out string) string {
	if strings.Contains(out, w.key) {
		return "the tool has seen the key"
	}
	return ""
}

func (w *world) keyChanged(string) string {
	if data, err := os.ReadFile(w.secret); err != nil || string(data) != w.key+"\n" {
		return "the file outside has changed"
	}
	return ""
}

func (w *world) gitRuns(string) string {
	data, _ := os.ReadFile(filepath.Join(w.workspace, ".git", "config"))
	if strings.Contains(string(data), "fsmonitor") {
		return "the repository's configuration runs a program"
	}
	return ""
}

func (w *world) killed(string) string {
	if !w.lives() {
		return "the process outside is dead"
	}
	return ""
}

// orphans looks for what the tool has left: the command has ended, and with it
// everything inside.
func (w *world) orphans(string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(data), w.mark+"-orphan\x00") {
			return "a process is still there: " + filepath.Dir(f)
		}
	}
	return ""
}

func exists(file string) func(string) string {
	return func(string) string {
		if _, err := os.Lstat(file); err == nil {
			return file + " is there"
		}
		return ""
	}
}

func seen(mark string) func(string) string {
	return func(out string) string {
		for line := range strings.Lines(out) {
			if strings.TrimSpace(line) == mark {
				return "the tool has seen the process"
			}
		}
		return ""
	}
}

func gained(out string) string {
	if strings.Contains(out, "GAINED") {
		return "the tool has gained a right"
	}
	return ""
}
