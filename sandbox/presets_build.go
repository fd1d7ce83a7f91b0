package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// systemTrees are what every preset shows of the system, as far as it exists.
var systemTrees = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/var/cache/fontconfig",
	"/sys/devices/system/cpu", // how many processors there are
}

// shared are directories that anything on the host can write to. The presets
// put private ones in their place, and believe nothing that lies there but what is the
// user's own, as caches are of a user whose home is a temporary directory.
var shared = []string{"/tmp", "/var/tmp"}

// noHome is the tool's home when the harness has none.
const noHome = "/home/tool"

// A builder gathers a preset's rules. Whatever it shows besides the system and
// the workspace goes through [builder.allow].
type builder struct {
	*resolve.Resolver
	env       func(string) string
	workspace string
	home      string          // as the tool has it
	homeReal  string          // canonical; "": not of the host
	own       []string        // canonical: what may not be shown as a whole
	shown     map[string]bool // what Read and CopyOnWrite have, as written and canonical
	files     Files
	search    []string          // the directories of PATH that may be shown
	homeNames map[string]bool   // what lies in homeReal, once listed
	homeBlind bool              // it cannot be listed
	secrets   []string          // homeSecrets below homeReal
	plain     *resolve.Resolver // follows the links that lead to what is not trusted, too
	notes     []policy.Note
}

// preset builds what ReadOnly and Workspace have in common.
func preset(dir string, write bool) Policy {
	return newBuilder(dir, os.Getenv, shared).policy(write)
}

func (b *builder) policy(write bool) Policy {
	for _, p := range b.Exist(slices.Concat(systemTrees, moreTrees)...) {
		b.show(&b.files.Read, p)
	}
	b.toolchains()
	if write {
		b.files.Write = []string{b.workspace}
		b.caches()
	} else if !b.shown[b.workspace] {
		b.files.Read = append(b.files.Read, b.workspace)
	}
	b.files.Worktrees = []string{b.workspace}
	b.hide(write)
	b.files.Make = b.homeFiles()
	return Policy{Files: b.files, Env: b.variables(), May: slices.Clone(presetsMay), Notes: b.notes}
}

func newBuilder(dir string, env func(string) string, shared []string) *builder {
	if abs, err := filepath.Abs(dir); err == nil && dir != "" {
		dir = abs // else it stands as it is, and New says what is wrong with it
	}
	b := &builder{Resolver: resolve.New(), env: env, workspace: dir, shown: map[string]bool{}}
	b.plain = resolve.New()
	b.Distrust = append([]string{dir}, b.plain.Canonical(dir)...)
	b.Shared = slices.Concat(shared, b.plain.Canonical(shared...))
	b.findHome(b.plain, shared)
	b.own = slices.Concat(b.Distrust, b.Shared, []string{b.home})
	if b.homeReal != "" {
		b.own = append(b.own, b.homeReal)
	}
	b.files.Private = append(b.Exist(shared...), b.home)
	return b
}

// findHome chooses the path of the tool's home. A harness that runs as a user
// without one ("/", "/nonexistent"), or with one of the system's directories as
// its home, gets noHome.
func (b *builder) findHome(r *resolve.Resolver, shared []string) {
	b.home = noHome
	home := b.env("HOME")
	if !validPath(home, pathrule.Private) {
		return
	}
	at := r.Find(home)
	if at.Err != nil || !at.Mode.IsDir() || pathrule.WithinAny(at.Path, []string{"/usr", "/etc", "/proc", "/dev", "/sys", "/run"}) {
		return
	}
	for _, tree := range slices.Concat(shared, systemTrees) {
		if pathrule.Within(tree, at.Path) {
			return
		}
	}
	b.home, b.homeReal = home, at.Path
	for _, name := range homeSecrets {
		b.secrets = append(b.secrets, pathrule.Join(b.homeReal, name))
	}
}

// allow says whether a place named by PATH, by a variable or by a link may be
// shown, and what it is: it can be trusted, and it is and contains no secret.
func (b *builder) allow(p string) (at *resolve.Target, ok bool) {
	at, ok = b.trust(p)
	return at, ok && !b.holdsSecret(at.Path)
}

// trust says whether a place may be believed. Not: what a tool could have made or
// led elsewhere, what contains the home, and what the sandbox has of its own.
func (b *builder) trust(p string) (at *resolve.Target, ok bool) {
	if !validPath(p, pathrule.Read) {
		return nil, false
	}
	at = b.Find(p)
	if at.Err != nil || b.Distrusts(at.Path) || pathrule.WithinAny(at.Path, unshown) || slices.Contains(otherPlaces, at.Path) {
		return at, false
	}
	for _, own := range b.own {
		if pathrule.Within(own, at.Path) {
			return at, false
		}
	}
	return at, true
}

// holdsSecret reports whether p, which is canonical, is a secret of the home, lies in
// one or contains one.
func (b *builder) holdsSecret(p string) bool {
	if b.homeReal == "" || !pathrule.Within(p, b.homeReal) {
		return false
	}
	return slices.ContainsFunc(b.secrets, func(secret string) bool { return pathrule.Within(p, secret) || pathrule.Within(secret, p) })
}

// unshown are places that no PATH and no variable can make a preset show.
var unshown = []string{"/proc", "/dev", "/sys", "/run", "/var/log", "/var/spool", "/boot"}

// grant shows p for reading if it may be shown and is not already.
func (b *builder) grant(p string) {
	at, ok := b.allow(p)
	if !ok || !at.Mode.IsDir() && !at.Mode.IsRegular() {
		return
	}
	if !b.shows(at.Path) || !b.shows(p) || at.Hops > 1 { // a link on the way has to be there, too
		b.show(&b.files.Read, p)
	}
}

func (b *builder) show(list *[]string, p string) {
	if !slices.Contains(*list, p) {
		*list = append(*list, p)
	}
	b.shown[p], b.shown[b.Find(p).Path] = true, true
}

// shows reports whether p lies in what is shown.
func (b *builder) shows(p string) bool {
	for ; p != "/"; p = path.Dir(p) {
		if b.shown[p] {
			return true
		}
	}
	return false
}

// hide lists what stays out, whatever the policy shows or is made to show.
func (b *builder) hide(write bool) {
	paths := b.Exist(systemSecrets...)
	if keys, err := filepath.Glob("/etc/ssh/*_key"); err == nil {
		paths = append(paths, keys...)
	}
	if os.Geteuid() == 0 {
		paths = append(paths, b.closed()...)
	}
	if b.homeReal != "" {
		for _, name := range homeSecrets {
			if p := pathrule.Join(b.home, name); b.homeHas(name) && b.Find(p).Err == nil {
				paths = append(paths, p)
			}
		}
	}
	for _, p := range b.Exist(otherPlaces...) {
		if b.Find(p).Path != b.homeReal {
			paths = append(paths, p)
		}
	}
	if problem, _ := b.unfit(write); problem != "" {
		paths = append(paths, b.workspace) // the contradiction that New reports; see the resolver
	}
	slices.Sort(paths)
	b.files.Hide = slices.Compact(paths)
}

// homeHas reports whether name, below the home, can exist: its first part does.
// One listing costs less than to look for a hundred names.
func (b *builder) homeHas(name string) bool {
	if b.homeNames == nil {
		b.homeNames = map[string]bool{}
		entries, err := os.ReadDir(b.homeReal)
		b.homeBlind = err != nil
		for _, e := range entries {
			b.homeNames[e.Name()] = true
		}
	}
	first, _, _ := strings.Cut(name, "/")
	return b.homeBlind || b.homeNames[first]
}

// validPath reports whether a policy may name p in a list of that kind.
func validPath(p string, kind pathrule.Kind) bool {
	problem, _ := pathrule.Check(p, kind)
	return problem == ""
}

// unfitForPreset says why dir cannot be the workspace of a preset.
func unfitForPreset(dir string, write bool) (problem, remedy string) {
	return newBuilder(dir, os.Getenv, shared).unfit(write)
}
