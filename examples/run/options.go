package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// options are the command line, read.
type options struct {
	policy  sandbox.Policy
	dir     string // where the tool starts; "": here
	report  bool
	explain bool
	session bool            // commands from standard input
	allows  *sandbox.Access // asked about, in place of a run
	tool    []string
}

// parse reads the command line. It touches nothing but what a preset looks at.
func parse(args []string, usage io.Writer) (options, error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(usage)
	var read, write, hide, hosts, env, may list
	preset := f.String("preset", "workspace", "`name`: workspace (the workspace can be written), readonly, or unconfined (no bounds at all)")
	workspace := f.String("workspace", "", "`directory` to work in (default: the present one)")
	timeout := f.Duration("timeout", 0, "end the run after this `duration` (default: never)")
	report := f.Bool("report", false, "print to standard error which bounds held")
	session := f.Bool("session", false, "run the lines of standard input in one sandbox, and answer by lines of JSON")
	explain := f.Bool("explain", false, "print what would be done, step by step, and run nothing")
	nested := f.Bool("nested", false, "let the tool make sandboxes inside its sandbox (bwrap, Chromium's, this program); what it writes is then gone after the run")
	allows := f.String("allows", "", "say whether the policy allows an `access`, such as 'write /etc/hosts' or 'connect example.org:443', and run nothing")
	f.Var(&read, "read", "a further `path` to read; may be repeated")
	f.Var(&write, "write", "a further `path` to write; may be repeated")
	f.Var(&hide, "hide", "a `path` that cannot be read; may be repeated")
	f.Var(&hosts, "host", "a `host` that can be reached, such as example.org:443 or *.example.org; may be repeated (default: none)")
	f.Var(&may, "may", "a `bound` that may be weaker or missing on a host that cannot hold it, \"container\" for those that no container without namespaces holds, or a path such as /tmp that the tool may share where none can be private; may be repeated")
	f.Var(&env, "env", "a variable that passes whatever its `name`, or NAME=VALUE; may be repeated")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o := options{report: *report, explain: *explain, session: *session, tool: f.Args()}
	if *allows != "" {
		access, err := parseAccess(*allows)
		if err != nil {
			return options{}, err
		}
		o.allows = &access
	}
	if o.session && len(o.tool) > 0 {
		return options{}, errors.New("-session reads its commands from standard input, and takes no tool")
	}
	if len(o.tool) == 0 && !o.session && !o.explain && o.allows == nil {
		return options{}, errors.New("no tool was named after the flags")
	}
	dir, err := filepath.Abs(*workspace)
	if err != nil {
		return options{}, err
	}
	if o.policy, err = presetNamed(*preset, dir); err != nil {
		return options{}, err
	}
	if *preset == "unconfined" && len(read)+len(write)+len(hide)+len(hosts) > 0 {
		return options{}, errors.New("-read, -write, -hide and -host bound nothing with -preset unconfined")
	}
	o.policy.Network.Hosts = hosts
	if o.policy.Limits.WallClock = *timeout; *timeout != 0 {
		o.policy.Open = slices.DeleteFunc(o.policy.Open, func(b sandbox.Bound) bool { return b == policy.BoundTime })
	}
	if err := widen(&o.policy, read, write, hide, env); err != nil {
		return options{}, err
	}
	accept(&o.policy, may)
	if *nested {
		f := &o.policy.Files
		o.policy.Nested, f.CopyOnWrite, f.Write = true, append(f.CopyOnWrite, f.Write...), nil
	}
	o.dir, err = startIn(dir)
	return o, err
}

func presetNamed(name, dir string) (sandbox.Policy, error) {
	switch name {
	case "workspace":
		return sandbox.Workspace(dir), nil
	case "readonly":
		return sandbox.ReadOnly(dir), nil
	case "unconfined":
		return sandbox.Unconfined(), nil
	}
	return sandbox.Policy{}, fmt.Errorf("-preset %q is not one of workspace, readonly, unconfined", name)
}

// widen writes the flags into the policy.
func widen(p *sandbox.Policy, read, write, hide, env list) error {
	for _, paths := range []struct {
		from list
		to   *[]string
	}{{read, &p.Files.Read}, {write, &p.Files.Write}, {hide, &p.Files.Hide}} {
		for _, name := range paths.from {
			abs, err := filepath.Abs(name)
			if err != nil {
				return err
			}
			*paths.to = append(*paths.to, abs)
		}
	}
	for _, v := range env {
		name, value, set := strings.Cut(v, "=")
		if !set {
			p.Env.Pass = append(p.Env.Pass, name)
			continue
		}
		if p.Env.Set == nil {
			p.Env.Set = map[string]string{}
		}
		p.Env.Set[name] = value
	}
	return nil
}

// accept writes -may into the policy. New knows the bounds' names.
func accept(p *sandbox.Policy, may list) {
	for _, m := range may {
		if m == "container" {
			*p = p.InContainer()
			continue
		}
		if filepath.IsAbs(m) {
			p.Files.MayShare = append(p.Files.MayShare, m)
			continue
		}
		p.May = append(p.May, sandbox.Bound(m))
	}
}

// startIn is the directory the tool starts in: this one if it lies in the
// workspace, and otherwise the workspace.
func startIn(workspace string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(workspace, here); err == nil && filepath.IsLocal(rel) {
		return "", nil
	}
	return workspace, nil
}

// list is a flag that may be repeated.
type list []string

// String is flag.Value's.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set is flag.Value's.
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}
