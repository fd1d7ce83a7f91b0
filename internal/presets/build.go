package presets

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/trust"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// systemTrees are what every preset shows of the system, as far as it exists.
var systemTrees = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/var/cache/fontconfig",
	"/sys/devices/system/cpu", "/sys/devices/system/node", // how many processors there are, and which memory is near them
	"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/apt", // what is installed, and what can be: public, and no secrets among it
}

// shared are directories that every user of the host can write to. The presets
// put private ones in their place, and trust only what is the user's own there, such as
// caches of a user whose home is a temporary directory.
var shared = []string{"/tmp", "/var/tmp"}

// noHome is the tool's home when the harness has none.
const noHome = "/home/tool"

// A Builder gathers a preset's rules. What it shows besides the system and
// the workspace has passed [Builder.showable].
type Builder struct {
	*resolve.Resolver
	env            func(string) string
	workspace      string
	tree           []string // the workspace, as written and canonical: nothing in it is believed
	places         *trust.Places
	shared         []string        // canonical
	home           string          // as the tool has it
	homeReal       string          // canonical; "": not of the host
	own            []string        // canonical: what may not be shown as a whole
	shown          map[string]bool // what Read and CopyOnWrite have, as written and canonical
	files          policy.Files
	search         []string          // the directories of PATH that may be shown
	homeNames      map[string]bool   // what lies in homeReal, once listed
	homeUnlistable bool              // it cannot be listed
	secrets        []string          // homeSecrets below homeReal
	roots          map[string]string // of toolchains that find themselves by HOME, by the variable that names each
	kept           bool              // the workspace is no project, but what a tool keeps: it may lie in ~/.cache and ~/.local/state
	plain          *resolve.Resolver // follows the links that lead to what is not trusted, too
	notes          []policy.Note
}

// Build returns the policy of Workspace, or of ReadOnly if dir is not to be written.
func Build(dir string, write bool) policy.Policy {
	return New(dir, os.Getenv, shared).Policy(write)
}

// Policy returns the preset. It is called once.
func (b *Builder) Policy(write bool) policy.Policy {
	for _, p := range b.Exist(slices.Concat(systemTrees, osTrees)...) {
		b.show(&b.files.Read, p)
	}
	b.toolchains(write)
	if write {
		b.files.Write = []string{b.workspace}
		b.caches()
	} else if !b.shown[b.workspace] {
		b.files.Read = append(b.files.Read, b.workspace)
	}
	b.files.Worktrees = []string{b.workspace}
	b.hide(write)
	b.files.Make = b.homeFiles()
	return policy.Policy{Dir: b.workspace, Network: policy.Network{Explain: true}, Files: b.files, Env: b.variables(), May: slices.Clone(maybeMissing), Notes: b.notes}
}

// New returns a builder for a workspace. Env looks up environment variables; in shared directories only the user's own
// files are trusted.
func New(dir string, env func(string) string, shared []string) *Builder {
	if abs, err := filepath.Abs(dir); err == nil && dir != "" {
		dir = abs // else it stands as it is, and New says what is wrong with it
	}
	b := &Builder{Resolver: resolve.New(), env: env, workspace: dir, shown: map[string]bool{}}
	b.plain = resolve.New()
	b.tree = append([]string{dir}, b.plain.Canonical(dir)...)
	b.shared = slices.Concat(shared, b.plain.Canonical(shared...))
	b.findHome(b.plain, shared)
	b.places = trust.New(b.homeReal)
	b.Follow = func(link string) bool { return !pathrule.WithinAny(link, b.tree) && b.places.Holds(link) }
	b.own = slices.Concat(b.tree, b.shared, []string{b.home})
	if b.homeReal != "" {
		b.own = append(b.own, b.homeReal)
	}
	b.files.Found = map[string]string{}
	b.files.Private = append(b.Exist(shared...), b.home)
	return b
}

// findHome chooses the path of the tool's home. A harness that runs as a user
// without one ("/", "/nonexistent"), or with one of the system's directories as
// its home, gets noHome.
func (b *Builder) findHome(r *resolve.Resolver, shared []string) {
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

// showable reports whether a path named by PATH, by a variable or by a link may be
// shown, and returns what it leads to: it is trusted, and neither is nor contains a secret.
func (b *Builder) showable(p string) (at *resolve.Target, ok bool) {
	at, ok = b.trusted(p)
	return at, ok && !b.holdsSecret(at.Path)
}

// trusted reports whether a path may be shown, for all that is known of its place: every link on the way stands where
// no tool could have made it. What a tool could have made may be a directory itself, but for the workspace's and what
// others can replace in a shared directory. Not shown are what contains the home, and what the sandbox replaces.
func (b *Builder) trusted(p string) (at *resolve.Target, ok bool) {
	if !validPath(p, pathrule.Read) {
		return nil, false
	}
	at = b.Find(p)
	if at.Err != nil || b.exchangeable(at.Path) || pathrule.WithinAny(at.Path, neverShown) || slices.Contains(AlwaysHidden, at.Path) {
		return at, false
	}
	for _, own := range b.own {
		if pathrule.Within(own, at.Path) {
			return at, false
		}
	}
	return at, true
}

// exchangeable reports whether what stands at a canonical path lies in the workspace, or where other users can put
// another in its place. Below a shared directory the user's own are as good as those of a home, as far as no other
// user can write on the way to them.
func (b *Builder) exchangeable(p string) bool {
	others := func(dir string) bool { return pathrule.Within(p, dir) && !b.places.Own(p, dir) }
	return pathrule.WithinAny(p, b.tree) || slices.ContainsFunc(b.shared, others)
}

// holdsSecret reports whether p, which is canonical, is a secret of the home, lies in
// one or contains one.
func (b *Builder) holdsSecret(p string) bool {
	if b.homeReal == "" || !pathrule.Within(p, b.homeReal) {
		return false
	}
	return slices.ContainsFunc(b.secrets, func(secret string) bool { return pathrule.Within(p, secret) || pathrule.Within(secret, p) })
}

// neverShown are directories that no PATH and no variable can make a preset show.
var neverShown = []string{"/proc", "/dev", "/sys", "/run", "/var/log", "/var/spool", "/boot"}

// grant shows p for reading if it may be shown and is not already.
func (b *Builder) grant(p string) {
	at, ok := b.showable(p)
	if !ok || !at.Mode.IsDir() && !at.Mode.IsRegular() {
		return
	}
	if !b.shows(at.Path) || !b.shows(p) || at.Hops > 1 { // a link on the way has to be there, too
		b.show(&b.files.Read, p)
	}
}

func (b *Builder) show(list *[]string, p string) {
	if !slices.Contains(*list, p) {
		*list = append(*list, p)
	}
	b.shown[p], b.shown[b.Find(p).Path] = true, true
	b.found(p, b.Find(p))
}

// found has New refuse p if it leads elsewhere then: a tool can put a link there meanwhile.
func (b *Builder) found(p string, at *resolve.Target) {
	if at.Err == nil && !b.places.Holds(at.Path) {
		b.files.Found[p] = at.Path
	}
}

// shows reports whether p lies in what is shown.
func (b *Builder) shows(p string) bool {
	for ; p != "/"; p = path.Dir(p) {
		if b.shown[p] {
			return true
		}
	}
	return false
}

// hide lists secrets and other users' files, hidden even if the caller adds a directory around them.
func (b *Builder) hide(write bool) {
	paths := b.Exist(systemSecrets...)
	if keys, err := filepath.Glob("/etc/ssh/*_key"); err == nil {
		paths = append(paths, keys...)
	}
	if os.Geteuid() == 0 {
		paths = append(paths, b.rootOnly()...)
	}
	if b.homeReal != "" {
		for _, name := range homeSecrets {
			if p := pathrule.Join(b.home, name); b.homeHas(name) && b.Find(p).Err == nil {
				paths = append(paths, p)
			}
		}
	}
	for _, p := range b.Exist(AlwaysHidden...) {
		if b.Find(p).Path != b.homeReal {
			paths = append(paths, p)
		}
	}
	if problem, _ := b.checkWorkspace(write); problem != "" {
		paths = append(paths, b.workspace) // the contradiction that New reports; see the resolver
	}
	slices.Sort(paths)
	b.files.Hide = slices.Compact(paths)
}

// homeHas reports whether name, below the home, can exist: its first part does.
// One listing costs less than to look for a hundred names.
func (b *Builder) homeHas(name string) bool {
	if b.homeNames == nil {
		b.homeNames = map[string]bool{}
		entries, err := os.ReadDir(b.homeReal)
		b.homeUnlistable = err != nil
		for _, e := range entries {
			b.homeNames[e.Name()] = true
		}
	}
	first, _, _ := strings.Cut(name, "/")
	return b.homeUnlistable || b.homeNames[first]
}

// validPath reports whether a policy may name p in a list of that kind.
func validPath(p string, kind pathrule.Kind) bool {
	problem, _ := pathrule.Check(p, kind)
	return problem == ""
}

// CheckWorkspace says why dir cannot be the workspace of a preset, and the remedy; "": it can be one.
func CheckWorkspace(dir string, write bool) (problem, remedy string) {
	return New(dir, os.Getenv, shared).checkWorkspace(write)
}

// CheckKept says why dir cannot be Files.Tmp or Files.Home, and the remedy; "": it can.
func CheckKept(dir string, _ bool) (problem, remedy string) {
	b := New(dir, os.Getenv, shared)
	b.kept = true
	problem, remedy = b.checkWorkspace(true)
	if problem != "" && !strings.HasPrefix(remedy, "pass ") {
		remedy = "name a directory made for it, such as one in ~/.cache/NAME"
	}
	return problem, remedy
}

// isKept reports whether real lies in a directory of a program's own in a cache or state directory of home, and is no
// build cache: what is there, programs make again or take for their own alone.
func (b *Builder) isKept(real, home string) bool {
	if !b.kept {
		return false
	}
	for _, c := range buildCaches {
		dir, _ := b.cacheDir(c)
		if pathrule.Within(real, dir) || pathrule.Within(dir, real) {
			return false
		}
	}
	bases := append(b.plain.Canonical(b.env("XDG_CACHE_HOME"), b.env("XDG_STATE_HOME")), pathrule.Join(home, ".cache"), pathrule.Join(home, ".local/state"))
	return slices.ContainsFunc(bases, func(base string) bool {
		return real != base && pathrule.Within(real, base) && pathrule.Within(base, home) && base != home
	})
}
