package presets

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// A cache is a directory in which a tool keeps what it can make or fetch again.
type cache struct {
	variable string // names the directory; may be empty
	below    string // what of it is the cache
	home     string // where it is otherwise, below the home
}

// buildCaches hold no credentials and no settings: ~/.m2/repository, not ~/.m2.
var buildCaches = []cache{
	{"GOCACHE", "", ".cache/go-build"}, {"GOMODCACHE", "", "go/pkg/mod"}, {"GOLANGCI_LINT_CACHE", "", ".cache/golangci-lint"},
	{"CARGO_HOME", "registry", ".cargo/registry"}, {"CARGO_HOME", "git", ".cargo/git"}, {"SCCACHE_DIR", "", ".cache/sccache"},
	{"npm_config_cache", "_cacache", ".npm/_cacache"}, {"YARN_CACHE_FOLDER", "", ".cache/yarn"}, {"", "", ".yarn/berry/cache"},
	{"", "", ".cache/pnpm"}, {"", "", ".local/share/pnpm/store"}, {"", "", ".bun/install/cache"}, {"DENO_DIR", "", ".cache/deno"},
	{"PIP_CACHE_DIR", "", ".cache/pip"}, {"UV_CACHE_DIR", "", ".cache/uv"}, {"", "", ".cache/pypoetry"}, {"", "", ".cache/pre-commit"},
	{"GRADLE_USER_HOME", "caches", ".gradle/caches"}, {"GRADLE_USER_HOME", "wrapper", ".gradle/wrapper"}, {"", "", ".m2/repository"}, {"", "", ".m2/wrapper"},
	{"", "", ".ivy2/cache"}, {"", "", ".cache/coursier"}, {"NUGET_PACKAGES", "", ".nuget/packages"},
	{"CCACHE_DIR", "", ".cache/ccache"}, {"", "", ".ccache"}, {"", "", ".cache/zig"}, {"PLAYWRIGHT_BROWSERS_PATH", "", ".cache/ms-playwright"},
	{"", "", ".cache/puppeteer"}, {"", "", ".cache/fontconfig"}, {"COREPACK_HOME", "", ".cache/node/corepack"},
}

// caches lists the build caches that exist. One that a variable names, and that
// does not exist yet, is an empty directory inside, so that the variable works.
func (b *Builder) caches() {
	for _, c := range buildCaches {
		dir, named := b.cacheDir(c)
		at, ok := b.showable(dir)
		switch {
		case ok && at.Mode.IsDir() && !b.shown[at.Path]:
			b.show(&b.files.CopyOnWrite, dir)
		case named && at != nil && errors.Is(at.Err, fs.ErrNotExist) && !pathrule.WithinAny(dir, b.own) && !b.shows(dir) && !slices.Contains(b.files.Private, dir):
			b.files.Private = append(b.files.Private, dir)
		}
	}
}

func (b *Builder) cacheDir(c cache) (dir string, named bool) {
	if v := b.env(c.variable); c.variable != "" && validPath(v, pathrule.CopyOnWrite) {
		return path.Join(v, c.below), true
	}
	if list := splitList(b.env("GOPATH")); c.variable == "GOMODCACHE" && len(list) > 0 && validPath(list[0], pathrule.Read) {
		return path.Join(list[0], "pkg/mod"), true
	}
	if rest, found := strings.CutPrefix(c.home, ".cache/"); found {
		if v := b.env("XDG_CACHE_HOME"); validPath(v, pathrule.Read) {
			return path.Join(v, rest), true
		}
	}
	return pathrule.Join(b.home, c.home), false
}
