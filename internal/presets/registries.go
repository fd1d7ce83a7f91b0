package presets

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

const (
	registryTime = 10 * time.Second // for all tools that are asked
	drainTime    = time.Second      // for a tool that ended and left its output open
)

// asker asks package tools for the registries that they are set to use. The tools run outside of a
// sandbox, so it runs none that lies in the workspace, and reads no file there.
type asker struct {
	*Builder
	env  []string // of the tools
	root string   // apt's files lie below it
}

// Registries returns what sandbox.Registries does. The working directory, if it can be a workspace, is what tools may have written.
func Registries(tools ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), registryTime)
	defer cancel()
	dir, _ := os.Getwd() // "" cannot be a workspace
	return newAsker(dir, "/", shared).hosts(ctx, tools)
}

func newAsker(workspace, root string, shared []string) *asker {
	a := &asker{Builder: New(workspace, os.Getenv, shared), root: root}
	if problem, _ := a.checkWorkspace(true); problem != "" {
		a.Distrust = nil // such as a home: no tool writes there
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names := func(dir string) bool { return strings.Contains(v, dir) }
		if name != "PATH" && name != "PWD" && name != "OLDPWD" && !slices.ContainsFunc(a.Distrust, names) {
			a.env = append(a.env, v)
		}
	}
	// The toolchain that a file of a project asks for is neither fetched nor run.
	a.env = append(a.env, "PATH="+strings.Join(a.searchPath(), ":"), "GOTOOLCHAIN=local", "GOWORK=off",
		"YARN_IGNORE_PATH=1", "COREPACK_ENABLE_NETWORK=0", "COREPACK_ENABLE_PROJECT_SPEC=0")
	return a
}

func (a *asker) hosts(ctx context.Context, tools []string) (hosts []string, err error) {
	var failed []error
	for _, name := range tools {
		list, err := a.ask(ctx, name)
		if err != nil {
			failed = append(failed, err)
		}
		for _, h := range list {
			if !slices.Contains(hosts, h) {
				hosts = append(hosts, h)
			}
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return hosts, nil
}

// variable returns a variable of the environment, unless it names the workspace.
func (a *asker) variable(name string) string {
	for _, v := range a.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// unsaid is the error for a tool that does not say its registries. No part of it is a value of a setting:
// a URL may have a password.
func unsaid(tool, problem, remedy string, cause error) error {
	return &policy.PolicyError{Field: "Registries", Value: tool, Problem: problem, Remedy: remedy, Err: cause}
}

// registryHost returns the host and port of a URL, for Network.Hosts, or "" for a URL of this machine's files.
func registryHost(tool, setting, raw string) (string, error) {
	bad := func(problem string) (string, error) {
		return "", unsaid(tool, "the setting "+setting+" "+problem, "set it to a URL such as https://packages.example.com/", nil)
	}
	u, err := url.Parse(raw)
	if err != nil { // which has the URL
		return bad("has what is no URL")
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	switch {
	case slices.Contains([]string{"file", "copy", "cdrom"}, u.Scheme):
		return "", nil
	case port == "":
		return bad("has a URL that is neither http nor https")
	case u.Port() != "":
		port = u.Port()
	}
	host := net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	if strings.Contains(host, "*") {
		return bad("has a URL for more than one host")
	}
	p := policy.Policy{Network: policy.Network{Hosts: []string{host}}}
	if err := p.Validate(); err != nil {
		return "", unsaid(tool, "the setting "+setting+" has a host that Network.Hosts does not take", "", err)
	}
	return host, nil
}

// registryHosts returns the hosts of the URLs of one setting.
func registryHosts(tool, setting string, urls ...string) (hosts []string, err error) {
	for _, u := range urls {
		h, err := registryHost(tool, setting, u)
		if err != nil {
			return nil, err
		}
		if h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// find returns the path of a program that is on PATH, and that no tool can have written.
func (a *asker) find(name string) (string, error) {
	for _, dir := range a.searchPath() {
		p := path.Join(dir, name)
		at := a.Find(p)
		if at.Err == nil && at.Mode.IsRegular() && at.Mode&0o111 != 0 && !a.Distrusts(at.Path) {
			return p, nil
		}
	}
	return "", exec.ErrNotFound
}

// run returns what a tool prints. The tool starts in "/", where only root can put settings of a project: npm, pyenv
// and go look for those in every directory above.
func (a *asker) run(ctx context.Context, tool, name string, args ...string) (string, error) {
	p, err := a.find(name)
	if err != nil {
		return "", unsaid(tool, name+" is not on PATH outside of the workspace", "install it, or leave the tool out", err)
	}
	cmd := exec.CommandContext(ctx, p, args...)
	out := &bounded{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = "/", a.env, out, drainTime
	ownGroup(cmd)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", unsaid(tool, "`"+strings.Join(append([]string{name}, args...), " ")+"` failed", "run it to see why", err)
	}
	return string(out.text), nil
}

var errTooLong = errors.New("is longer than 1 MiB")

// bounded keeps what a tool prints, up to maxConfig.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxConfig {
		return 0, errTooLong
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// read returns the text of a file of settings, "" if there is none. It reads no file that a tool can have written.
func (a *asker) read(tool, p string) (string, error) {
	if !validPath(p, pathrule.Read) {
		return "", unsaid(tool, "the path of its settings is not absolute, or not clean", "set HOME", nil)
	}
	if _, err := os.Lstat(p); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	at := a.Find(p)
	switch {
	case at.Err != nil:
		return "", unsaid(tool, p+" cannot be read", "", at.Err)
	case a.Distrusts(at.Path) || !at.Mode.IsRegular():
		return "", unsaid(tool, p+" is no file of settings, or a tool can have written it", "", nil)
	}
	text, err := regularfile.Read(at.Path, maxConfig)
	if errors.Is(err, regularfile.ErrTooLarge) {
		err = errTooLong
	}
	if err != nil {
		return "", unsaid(tool, p+" cannot be read", "", err)
	}
	return string(text), nil
}
