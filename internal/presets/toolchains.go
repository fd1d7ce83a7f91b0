package presets

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/internal/trust"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// foundByHome are the variables of toolchains that look below HOME without them, and that write nothing there at their
// use.
var foundByHome = []string{"PYENV_ROOT", "RBENV_ROOT", "NODENV_ROOT", "GOENV_ROOT", "ASDF_DATA_DIR", "NVM_DIR", "OPAMROOT"}

// prefixMarks tell a toolchain's own directory from one that merely has a bin:
// Go, node, conda, a JDK, a Python environment, Rust, Ruby, Homebrew.
var prefixMarks = []string{"VERSION", "lib/node_modules", "conda-meta", "release", "pyvenv.cfg", "lib/rustlib", "lib/ruby", "Cellar"}

// toolchains grants the directories of PATH and what belongs to them.
func (b *Builder) toolchains(write bool) {
	b.search = b.searchPath()
	for _, variable := range []string{"GOROOT", "JAVA_HOME", "CONDA_PREFIX"} {
		b.prefix(path.Join(b.env(variable), "bin"))
	}
	for _, variable := range []string{"RUSTUP_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT"} {
		b.grant(b.env(variable))
	}
	for _, dir := range b.search {
		b.prefix(dir)
	}
	for _, t := range trust.Toolchains {
		b.toolchain(t, write)
	}
	for _, dir := range b.search {
		b.grant(dir)
		b.linked(dir)
	}
}

// inParts reports whether dir is a toolchain's root below the home of which only
// parts are shown: it stays in PATH for a program that is one of them.
func (b *Builder) inParts(dir string) bool {
	return slices.ContainsFunc(trust.Toolchains, func(t trust.Toolchain) bool {
		return dir == pathrule.Join(b.home, t.Root) && !slices.Contains(t.Parts, ".")
	})
}

func (b *Builder) toolchain(t trust.Toolchain, write bool) {
	root := pathrule.Join(b.home, t.Root)
	if v := b.env(t.Variable); t.Variable != "" && validPath(v, pathrule.Read) {
		root = v
	}
	if !slices.ContainsFunc(b.search, func(dir string) bool { return pathrule.Within(dir, root) }) {
		return
	}
	for _, p := range t.Parts {
		b.grant(path.Join(root, p))
	}
	for _, p := range t.Others {
		b.grant(pathrule.Join(b.home, p))
	}
	if rustup := pathrule.Join(b.home, ".rustup"); t.Root == ".cargo" && b.env("RUSTUP_HOME") == "" && b.shows(rustup) {
		b.root("RUSTUP_HOME", rustup)
	}
	if b.env(t.Variable) == "" && slices.Contains(foundByHome, t.Variable) && b.shows(root) {
		b.root(t.Variable, root)
	}
	if dir := path.Join(root, t.Shims); write && t.Shims != "" {
		if at, ok := b.showable(dir); ok && at.Mode.IsDir() && !b.shown[at.Path] {
			b.show(&b.files.CopyOnWrite, dir)
		}
	}
}

// root names a toolchain's root by its variable: HOME can be another directory, Files.Home, or the run's own without
// namespaces.
func (b *Builder) root(variable, dir string) {
	if b.roots == nil {
		b.roots = map[string]string{}
	}
	b.roots[variable] = dir
}

// prefix grants the directory around bin if it is a toolchain's. A conda
// environment lies in the installation that it needs.
func (b *Builder) prefix(bin string) {
	root := path.Dir(bin)
	if at, ok := b.showable(root); !ok || path.Base(bin) != "bin" || b.shows(root) && b.shows(at.Path) {
		return
	}
	for _, mark := range prefixMarks {
		if found := b.Find(path.Join(root, mark)); found.Err == nil {
			if !b.places.Holds(found.Path) && b.isRepository(root) {
				return // a project with a bin: its mark can be a tool's
			}
			if base := path.Dir(path.Dir(root)); mark == "conda-meta" && b.Find(path.Join(base, mark)).Err == nil {
				b.grant(base)
			}
			b.grant(root)
			return
		}
	}
}

// searchPath returns the directories of PATH that a preset can show: absolute,
// existing, each once.
func (b *Builder) searchPath() []string {
	var out []string
	for _, dir := range splitList(b.env("PATH")) {
		if at, ok := b.trusted(dir); ok && at.Mode.IsDir() && (b.inParts(dir) || !b.holdsSecret(at.Path)) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// toolPath is the tool's PATH: the directories that are shown, and those of the workspace.
func (b *Builder) toolPath() string {
	var out []string
	for _, dir := range splitList(b.env("PATH")) {
		if !slices.Contains(out, dir) && (slices.Contains(b.search, dir) || validPath(dir, pathrule.Read) && pathrule.Within(dir, b.workspace)) {
			out = append(out, dir)
		}
	}
	if len(out) == 0 {
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return strings.Join(out, ":")
}

// maxTools bounds how many names of one directory are looked at for links.
const maxTools = 4096

// linked grants what the links in a directory of PATH lead to: the toolchain that a tool belongs to, or only its file.
// In a toolchain and in the system, but for /usr/local, they lead nowhere else. Links that a tool can have made, as
// those of a Python environment of another project, show a toolchain of the home and nothing else.
func (b *Builder) linked(dir string) {
	at := b.Find(dir)
	if b.inParts(dir) {
		return
	}
	held := b.places.HoldsIn(at.Path)
	local := slices.Contains([]string{"/usr/local/bin", "/usr/local/sbin", "/opt/bin"}, at.Path)
	if held && b.shows(path.Dir(at.Path)) && !local {
		return
	}
	d, err := regularfile.OpenDir(at.Path)
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxTools) // what could be read counts
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		p := pathrule.Join(dir, e.Name())
		if !held {
			if tree := b.places.Toolchain(b.plain.Find(p).Path); tree != "" {
				b.grant(pathrule.Join(b.home, tree))
			}
			continue
		}
		if to, ok := b.showable(p); ok && to.Mode.IsRegular() && !b.shows(to.Path) {
			b.prefix(path.Dir(to.Path))
			b.grant(p)
		}
	}
}

// goKeys are the settings of "go env -w" that the tool gets too. None
// names a server, whose URL may have a password, or a program to run.
var goKeys = []string{
	"GOFLAGS", "GOTOOLCHAIN", "GOPATH", "GOMODCACHE", "GOCACHE", "GOEXPERIMENT", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOSUMDB",
	"GOPRIVATE", "GONOSUMDB", "GONOPROXY", "GO111MODULE", "GOTELEMETRY",
}

// goSettings returns what the text of go's env file says of goKeys. Of two lines the last counts, as for go.
func goSettings(text string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if found && slices.Contains(goKeys, key) && !policy.URLWithUser(value) && !strings.Contains(value, "-toolexec") && !strings.ContainsRune(value, 0) {
			set[key] = value
		}
	}
	return set
}
