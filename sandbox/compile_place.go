package sandbox

import (
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ownPlace is the directory inside that holds what is the sandbox's own, and the
// names of the files in it.
const (
	ownPlace   = "/run/holdfast"
	bundleFile = "ca.pem"
	storeFile  = "ca.p12"
	sshFile    = "ssh-agent"
	configFile = "ssh_config." // and a number

	ownHome, ownTmp = "home", "tmp" // of the run's own directory
)

// gpgSocket is where gpg looks for its agent: in its home, unless the system has
// a directory for the user's sockets, which it has not inside (gpgconf(1)).
func (w wiring) gpgSocket() string { return path.Join(w.home, ".gnupg", "S.gpg-agent") }

// hasFiles reports whether something has to be in the sandbox's own place.
func (w wiring) hasFiles() bool { return w.trusts || w.sshAgent || w.relay != "" }

// own finds the sandbox's own place, and "" where only the run's own directory on
// the host can be it: nothing may be made in a tree that is the host's.
func (in input) own() string {
	if !in.walled() && in.policy.Root == nil || slices.Contains(in.policy.Open, policy.BoundFiles) {
		return ""
	}
	for _, dir := range append([]string{ownPlace}, in.privates()...) {
		if in.inside(dir) {
			return dir
		}
	}
	return ""
}

// privates are places in directories that are the sandbox's own.
func (in input) privates() []string {
	var list []string
	for _, e := range in.layout.Entries {
		if e.Kind == pathrule.Private {
			list = append(list, pathrule.Join(e.Path, ".holdfast"))
		}
	}
	for _, p := range in.puts {
		if t, ok := p.do.(plan.PutTmpfs); ok {
			list = append(list, pathrule.Join(t.At, ".holdfast"))
		}
	}
	return list
}

// inside reports whether p, which the policy does not name, lies in something of
// the sandbox's own: what is made there is not made on the host.
func (in input) inside(p string) bool {
	ours := true // the root
	for _, e := range in.layout.Entries {
		if pathrule.Within(p, e.Path) {
			ours = e.Kind == pathrule.Private
		}
	}
	for _, put := range in.puts {
		switch do := put.do.(type) {
		case plan.PutBind:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutOverlay:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutData:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutProc:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutDev:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutQueue:
			ours = ours && !pathrule.Within(p, do.At)
		case plan.PutTmpfs:
			ours = ours || pathrule.Within(p, do.At)
		}
	}
	return ours
}
