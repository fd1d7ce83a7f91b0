package presets

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A toolchain is a family of tools that lives in home directories. It is in use
// when a directory of PATH lies in its root; then its parts can be read.
type toolchain struct {
	variable string   // names the root; may be empty
	root     string   // where it is otherwise, below the home
	parts    []string // below the root; ".": all of it
	others   []string // further directories below the home
	shims    string   // below the root: "pip install" and its kin write there what starts the installed programs
}

// toolchains lists no credentials: where a root holds some, only its other parts are named.
var toolchains = []toolchain{
	{"CARGO_HOME", ".cargo", []string{"bin", "env"}, []string{".rustup"}, ""},
	{"RUSTUP_HOME", ".rustup", []string{"."}, nil, ""},
	{"PYENV_ROOT", ".pyenv", []string{"."}, nil, "shims"},
	{"RBENV_ROOT", ".rbenv", []string{"."}, nil, "shims"},
	{"NVM_DIR", ".nvm", []string{"nvm.sh", "alias", "versions"}, nil, ""},
	{"NODENV_ROOT", ".nodenv", []string{"."}, nil, "shims"},
	{"GOENV_ROOT", ".goenv", []string{"."}, nil, "shims"},
	{"GOPATH", "go", []string{"bin"}, nil, ""},
	{"VOLTA_HOME", ".volta", []string{"bin", "tools"}, nil, ""},
	{"BUN_INSTALL", ".bun", []string{"bin", "install/global"}, nil, ""},
	{"DENO_INSTALL", ".deno", []string{"bin"}, nil, ""},
	{"PNPM_HOME", ".local/share/pnpm", []string{"."}, nil, ""},
	{"SDKMAN_DIR", ".sdkman", []string{"bin", "candidates"}, nil, ""},
	{"ASDF_DATA_DIR", ".asdf", []string{"."}, []string{".tool-versions"}, "shims"},
	{"MISE_DATA_DIR", ".local/share/mise", []string{"installs", "shims"}, nil, ""},
	{"", ".local/share/fnm", []string{"."}, nil, ""},
	{"", ".local/state/fnm_multishells", []string{"."}, []string{".local/share/fnm"}, ""},
	{"", ".yarn", []string{"bin"}, []string{".config/yarn/global"}, ""},
	{"DOTNET_ROOT", ".dotnet", []string{"dotnet", "host", "shared", "sdk", "sdk-manifests", "packs", "templates", "metadata", "library-packs", "tools"}, nil, ""},
	{"", ".juliaup", []string{"."}, []string{".julia/juliaup"}, ""},
	{"", ".ghcup", []string{"."}, nil, ""},
	{"", ".cabal", []string{"bin"}, nil, ""},
	{"OPAMROOT", ".opam", []string{"."}, nil, ""},
	{"", ".nix-profile", []string{"."}, nil, ""},
	{"", ".linuxbrew", []string{"."}, nil, ""},
	{"", ".local/bin", []string{"."}, []string{".local/lib", ".local/share/pipx/venvs", ".local/pipx/venvs", ".local/share/uv/tools", ".local/share/uv/python"}, ""},
	{"", "bin", []string{"."}, nil, ""},
}

// foundByHome are the variables of toolchains that look below HOME without them, and that write nothing there at their use.
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
	for _, t := range toolchains {
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
	return slices.ContainsFunc(toolchains, func(t toolchain) bool {
		return dir == pathrule.Join(b.home, t.root) && !slices.Contains(t.parts, ".")
	})
}

func (b *Builder) toolchain(t toolchain, write bool) {
	root := pathrule.Join(b.home, t.root)
	if v := b.env(t.variable); t.variable != "" && validPath(v, pathrule.Read) {
		root = v
	}
	if !slices.ContainsFunc(b.search, func(dir string) bool { return pathrule.Within(dir, root) }) {
		return
	}
	for _, p := range t.parts {
		b.grant(path.Join(root, p))
	}
	for _, p := range t.others {
		b.grant(pathrule.Join(b.home, p))
	}
	if rustup := pathrule.Join(b.home, ".rustup"); t.root == ".cargo" && b.env("RUSTUP_HOME") == "" && b.shows(rustup) {
		b.root("RUSTUP_HOME", rustup)
	}
	if b.env(t.variable) == "" && slices.Contains(foundByHome, t.variable) && b.shows(root) {
		b.root(t.variable, root)
	}
	if dir := path.Join(root, t.shims); write && t.shims != "" {
		if at, ok := b.showable(dir); ok && at.Mode.IsDir() && !b.shown[at.Path] {
			b.show(&b.files.CopyOnWrite, dir)
		}
	}
}

// root names a toolchain's root by its variable: HOME can be another directory, Files.Home, or the run's own without namespaces.
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
		if b.Find(path.Join(root, mark)).Err == nil {
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

// linked grants what the links in a directory of PATH lead to: the toolchain
// that a tool belongs to, or only its file. In a toolchain and in the system,
// but for /usr/local, they lead nowhere else.
func (b *Builder) linked(dir string) {
	at := b.Find(dir)
	if b.inParts(dir) {
		return
	}
	if b.shows(path.Dir(at.Path)) && !slices.Contains([]string{"/usr/local/bin", "/usr/local/sbin", "/opt/bin"}, at.Path) {
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
		if to, ok := b.showable(pathrule.Join(dir, e.Name())); ok && to.Mode.IsRegular() && !b.shows(to.Path) {
			b.prefix(path.Dir(to.Path))
			b.grant(pathrule.Join(dir, e.Name()))
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
