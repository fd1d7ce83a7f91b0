package compile

import (
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// DefaultDir is the sandbox's own directory inside, and the others are the
// names of the files in it.
const (
	DefaultDir = "/run/holdfast"
	BundleFile = "ca.pem"
	StoreFile  = "ca.p12"
	SshFile    = "ssh-agent"
	ConfigFile = "ssh_config." // and a number
)

// GPGSocket is where gpg looks for its agent: in its home, unless the system has
// a directory for the user's sockets, which it has not inside (gpgconf(1)).
func (w NetConfig) GPGSocket() string { return path.Join(w.Home, ".gnupg", "S.gpg-agent") }

// HasFiles reports whether the sandbox needs its own directory, Dir, for files.
func (w NetConfig) HasFiles() bool { return w.EndsTLS || w.SSHAgent || w.Relay != "" }

// OwnDir finds the path of the sandbox's own directory, and "" where only the run's own directory on
// the host can be it: nothing may be made in a tree that is the host's.
func (in Input) OwnDir() string {
	if !in.Namespaced() && in.Policy.Root == nil || slices.Contains(in.Policy.Open, policy.BoundFiles) {
		return ""
	}
	for _, dir := range append([]string{DefaultDir}, in.privates()...) {
		if in.Inside(dir) {
			return dir
		}
	}
	return ""
}

// privates are places in directories that are the sandbox's own.
func (in Input) privates() []string {
	var list []string
	for _, e := range in.Tree.Entries {
		if e.Kind == pathrule.Private {
			list = append(list, pathrule.Join(e.Path, ".holdfast"))
		}
	}
	for _, p := range in.Mounts {
		if t, ok := p.Action.(plan.PutTmpfs); ok {
			list = append(list, pathrule.Join(t.At, ".holdfast"))
		}
	}
	return list
}

// Inside reports whether p, which the policy does not name, lies in something of
// the sandbox's own: what is made there is not made on the host.
func (in Input) Inside(p string) bool {
	ours := true // the root
	for _, e := range in.Tree.Entries {
		if pathrule.Within(p, e.Path) {
			ours = e.Kind == pathrule.Private
		}
	}
	for _, put := range in.Mounts {
		switch do := put.Action.(type) {
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

// FileList names the files that the sandbox's own directory has to hold.
func (w NetConfig) FileList() string {
	var list []string
	if w.EndsTLS {
		list = append(list, "a trust bundle")
	}
	if w.Relay != "" {
		list = append(list, "the relay of ssh")
	}
	if w.SSHAgent {
		list = append(list, "the ssh agent's socket")
	}
	return strings.Join(list, ", ")
}

// The directories in a run's own directory on the host, which the tool's HOME and TMPDIR name where nothing is mounted; on Linux HOME names
// the run's own directory itself. A third, "shm", is package supervisor's.
const RunHome, RunTmp = "home", "tmp"
