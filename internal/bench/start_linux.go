package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// trivial is the tool whose start is measured: nearly all of its time is its
// start.
const trivial = "/bin/true"

// The names of the contenders.
const (
	plain     = "os/exec"
	sandboxed = "Sandbox.Command"
	sameTree  = "Sandbox.Command, showing what bubblewrap shows"
	proxied   = "Sandbox.Command, WorkspaceNet of one host"
	secretive = "Sandbox.Command, the same with a credential"
	captured  = "Sandbox.Command, the same with capture"
	anew      = "sandbox.Command (policy compiled anew)"
	alone     = "Sandbox.Command, Workspace InContainer, where a filter refuses namespaces"
	wrapped   = "bubblewrap"
)

// workspace makes a temporary directory and the default sandbox of it, or what changes make of that.
func workspace(changes ...func(sandbox.Policy) sandbox.Policy) (dir string, s *sandbox.Sandbox, err error) {
	if dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return "", nil, err
	}
	p := sandbox.Workspace(dir)
	for _, change := range changes {
		p = change(p)
	}
	if s, err = sandbox.New(p); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, s, nil
}

// start measures the whole life of /bin/true, from Start to the end of Wait.
func start(rounds int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	back, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(dir); err != nil { // the default sandbox is that of the working directory
		return nil, err
	}
	defer os.Chdir(back)
	whole, err := sandbox.New(sandbox.Policy{
		Files: sandbox.Files{Read: []string{"/"}, Write: []string{dir}},
		Env:   sandbox.Env{Pass: []string{"*"}},
	})
	if err != nil {
		return nil, err
	}
	nets, err := networks(dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	other, err := newWorker(self, harnessWorker, "0", withoutNamespaces) // what this process can do is remembered
	if err != nil {
		return nil, err
	}
	defer other.close()
	list := []contender{
		timed(plain, func() error { return exec.Command(trivial).Run() }),
		timed(sandboxed, func() error { return s.Command(trivial).Run() }),
		{alone, func() (time.Duration, error) { return other.ask("start") }},
		timed(sameTree, func() error { return whole.Command(trivial).Run() }),
		timed(proxied, func() error { return nets[0].Command(trivial).Run() }),
		timed(secretive, func() error { return nets[1].Command(trivial).Run() }),
		timed(captured, func() error { return nets[2].Command(trivial).Run() }),
		timed(anew, func() error { return sandbox.Command(trivial).Run() }),
	}
	peer, version := bubblewrap(dir)
	if peer != nil {
		list = append(list, timed(wrapped, func() error { return exec.Command(peer[0], append(peer[1:], trivial)...).Run() }))
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	return []table{startTable(r, rounds, version)}, nil
}

// startTable shows each contender beside the first, which is os/exec, and beside bubblewrap.
func startTable(r *results, rounds int, version string) table {
	t := table{title: fmt.Sprintf("Start to end of %s, %d rounds: medians and quartiles", trivial, rounds),
		head: []string{"", "ms", "ms over os/exec", "x os/exec", "x bubblewrap"}, remark: version}
	for i, name := range r.names {
		over, against := "", ""
		if i > 0 {
			over = r.added(i, 0, time.Millisecond).String()
		}
		if b := r.index(wrapped); b >= 0 {
			against = r.ratio(i, b).String()
		}
		t.add(name, r.time(i, time.Millisecond).String(), over, r.ratio(i, 0).String(), against)
	}
	return t
}

// networks are the default sandbox with more and more of a network.
func networks(dir string) (list [3]*sandbox.Sandbox, err error) {
	p := sandbox.WorkspaceNet(dir, "example.com")
	for i := range list {
		switch i {
		case 1:
			p.Network.Credentials = []policy.Credential{{Name: "TOKEN", Secret: "a long secret", Hosts: p.Network.Hosts, Place: policy.PlaceBearer}}
		case 2:
			p.Network.Credentials, p.Network.Capture = nil, capture.Netstack
		}
		if list[i], err = sandbox.New(p); err != nil {
			return list, err
		}
	}
	return list, nil
}

// bubblewrap is the command line that agent harnesses give it, and its version;
// nil: it is not installed.
func bubblewrap(dir string) (args []string, version string) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, "bubblewrap is not installed."
	}
	out, _ := exec.Command(path, "--version").Output()
	args = []string{path, "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--bind", dir, dir,
		"--unshare-net", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"}
	return args, fmt.Sprintf("%s with `--new-session --die-with-parent --ro-bind / / --bind W W --unshare-net --dev /dev --unshare-pid --proc /proc`.", strings.TrimSpace(string(out)))
}
