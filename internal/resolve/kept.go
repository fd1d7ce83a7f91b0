package resolve

import (
	"maps"
	"os"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// GitConfig is the name in Files.Home of what git takes for the user's configuration inside. No program outside obeys it.
const GitConfig = ".sandbox-gitconfig"

// bases are the variables of the XDG Base Directory Specification that can lie in a home.
var bases = []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"}

// Keep checks Files.Tmp and Files.Home, and lets p's environment name them. It returns the files of Make that lie in the
// HOME that p had, with their places in Files.Home: they are the run's to make there, and no longer among p's.
func Keep(p *policy.Policy, unfit Unfit) (files []policy.File, err error) {
	f := &p.Files
	if f.Tmp+f.Home == "" {
		return nil, nil
	}
	r := New()
	others := r.Canonical(append(append([]string{}, f.Write...), f.CopyOnWrite...)...)
	for _, list := range f.Lists() {
		if !list.Single || len(list.Paths) == 0 {
			continue
		}
		real, bad := r.kept(list.Paths[0], others, unfit)
		if bad != nil {
			bad.Field = list.Field
			return nil, bad
		}
		others = append(others, real)
	}
	set := maps.Clone(p.Env.Set)
	if set == nil {
		set = map[string]string{}
	}
	old := set["HOME"]
	if old == "" {
		old = os.Getenv("HOME")
	}
	p.Env.Set = set
	if f.Tmp != "" {
		set["TMPDIR"] = f.Tmp
		p.Notes = append(p.Notes, policy.Note{At: "Files.Tmp", Rule: f.Tmp, Class: "granted", Why: "TMPDIR names it: what is written there is kept, and the harness sees it; a private /tmp is another directory"})
	}
	if f.Home == "" {
		return nil, nil
	}
	set["HOME"] = f.Home
	if set["GIT_CONFIG_GLOBAL"] == "" {
		set["GIT_CONFIG_GLOBAL"] = pathrule.Join(f.Home, GitConfig)
	}
	for _, name := range bases {
		if rest, ok := strings.CutPrefix(os.Getenv(name), old+"/"); ok && old != "" && set[name] == "" {
			set[name] = path.Join(f.Home, rest)
		}
	}
	p.Notes = append(p.Notes, policy.Note{At: "Files.Home", Rule: f.Home, Class: "granted", Why: "HOME names it: what is written there is kept for the next run"})
	var made []policy.File
	for _, m := range f.Make {
		rest, ok := strings.CutPrefix(m.Path, strings.TrimSuffix(old, "/")+"/")
		if !ok || old == "" {
			made = append(made, m)
			continue
		}
		if rest == ".gitconfig" {
			rest = GitConfig
		}
		m.Path = pathrule.Join(f.Home, rest)
		files = append(files, m)
	}
	f.Make = made
	return files, nil
}

// kept judges a directory that is kept for the tool, and returns its canonical path. The caller fills in the error's field.
func (r *Resolver) kept(dir string, others []string, unfit Unfit) (real string, bad *policy.PolicyError) {
	at := r.Find(dir)
	if at.Err != nil {
		bad = Rule{Asked: dir}.cannot(at.Err)
		bad.Remedy = "make it first, with mode 0700"
		return "", bad
	}
	problem, remedy := "is a file", "name a directory"
	if at.Mode.IsDir() {
		problem, remedy = exposed(at.Path)
	}
	if problem == "" {
		if problem, remedy = unfit(dir, true); problem != "" {
			problem = "cannot be kept for a tool: " + problem
		}
	}
	for _, other := range others {
		if problem == "" && (pathrule.Within(at.Path, other) || pathrule.Within(other, at.Path)) {
			problem, remedy = "overlaps with "+other+", which the tool may write to by another field", "name a directory made for it, outside of Files.Write and Files.CopyOnWrite"
		}
	}
	if problem != "" {
		return "", &policy.PolicyError{Value: dir, Problem: problem, Remedy: remedy}
	}
	return at.Path, nil
}
