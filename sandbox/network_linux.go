package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/trust"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// fillNetwork fills in the input's NetConfig from the policy and this host. configs are the system's files of
// ssh's configuration; nil: where they are. What is left of it in
// the input has no secret and no function in it.
func fillNetwork(s *runner.Sandbox, in *compile.Input, configs []string) (err error) {
	n := s.Policy.Network
	in.Policy.Network = Network{Host: n.Host}
	in.NetConfig = compile.NewNetConfig(n)
	if n.SSHAgent {
		if s.Networks.Outside.SSHAgent, err = resolve.AgentSocket("Network.SSHAgent", os.Getenv("SSH_AUTH_SOCK"), "start an ssh-agent, and the harness with its SSH_AUTH_SOCK"); err != nil {
			return err
		}
	}
	if s.Policy.Root != nil {
		in.NetConfig.Hostname = s.Policy.Root.Namespaces.Hostname
		if in.NetConfig.Sockets, err = resolveSockets(n.Unix); err != nil {
			return err
		}
	}
	if n.GPGAgent {
		if err := wireGPG(s, in); err != nil {
			return err
		}
	}
	if n.SSH {
		if err := wireRelay(in); err != nil {
			return err
		}
	}
	if in.NetConfig.HasFiles() {
		in.NetConfig.Dir = in.OwnDir()
		if in.NetConfig.Dir == "" && in.NetConfig.Relay != "" && s.Policy.Root == nil {
			in.NetConfig.Relay, in.NetConfig.NoRelay = "", true
		}
		if in.NetConfig.Dir == "" && s.Policy.Root != nil {
			return &PolicyError{Field: "Root", Problem: "has no place for what the tool needs of the sandbox itself: " + in.NetConfig.FileList(), Remedy: `put in a Tmpfs at "/run"`}
		}
	}
	coverBundle(in)
	coverConfigs(in, configs)
	if n.Capture != nil {
		in.Facts.TUN = Probe().TUN
	}
	return nil
}

// wireRelay finds the harness's own program.
func wireRelay(in *compile.Input) error {
	exe, err := os.Executable()
	if err == nil {
		exe, _, err = resolve.Canonical(exe)
	}
	if err != nil {
		return &PolicyError{Field: "Network.SSH", Value: exe, Problem: "the harness's own program, by which ssh would connect, is not where it was started from", Remedy: "start it anew", Err: err}
	}
	in.NetConfig.Relay = exe
	return nil
}

// coverBundle finds the system's bundle, if the policy shows it: some tools look
// there and nowhere else (wget).
func coverBundle(in *compile.Input) {
	if !in.NetConfig.EndsTLS || in.NetConfig.Dir == "" || in.Policy.Root != nil {
		return
	}
	for _, name := range proxy.SystemBundles {
		if real, info, err := resolve.Canonical(name); err == nil && info.Mode().IsRegular() && showsHosts(in, real) {
			in.NetConfig.Bundle = real
			return
		}
	}
}

// wireGPG finds the agent's socket outside, and its place inside.
func wireGPG(s *runner.Sandbox, in *compile.Input) (err error) {
	socket, places := "", trust.New(os.Getenv("HOME"))
	if gpgconf, err := places.Program("gpgconf", os.Getenv("PATH")); err == nil {
		env := append(os.Environ(), "PATH="+places.Search(os.Getenv("PATH"))) // the last counts
		if out, err := trust.Run(gpgconf, env, "--list-dirs", "agent-socket"); err == nil {
			socket = strings.TrimSpace(string(out))
		}
	}
	if s.Networks.Outside.GPGAgent, err = resolve.AgentSocket("Network.GPGAgent", socket, "start a gpg-agent: gpgconf --launch gpg-agent"); err != nil {
		return err
	}
	env, _ := s.Env.Of(s.Policy.Env)
	home := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "HOME="); ok {
			home = value // the last counts
		}
	}
	in.NetConfig.Home = home
	if at := in.NetConfig.GPGSocket(); !filepath.IsAbs(home) || !in.Namespaced() && s.Policy.Root == nil || slices.Contains(s.Policy.Open, policy.BoundFiles) || !in.Inside(filepath.Dir(at)) {
		return &PolicyError{Field: "Network.GPGAgent", Value: home, Problem: "the tool's HOME is not the sandbox's own, and gpg looks for its agent there", Remedy: "make it a Private directory, as the presets do"}
	}
	return nil
}

// resolveSockets makes the sockets of a layout canonical.
func resolveSockets(paths []string) ([]string, error) {
	var out []string
	for i, p := range paths {
		real, info, err := resolve.Canonical(p)
		if err == nil && info.Mode()&fs.ModeSocket == 0 {
			err = syscall.ENOTSOCK
		}
		if err != nil {
			return nil, &PolicyError{Field: fmt.Sprintf("Network.Unix[%d]", i), Value: p, Problem: "is not a socket", Remedy: "name the socket of a server that runs", Err: err}
		}
		out = append(out, real)
	}
	return out, nil
}
