package trust

import "path"

// A Toolchain is a family of tools that lives in home directories. A preset shows its parts when it is in use.
type Toolchain struct {
	Variable string   // names the root; may be empty
	Root     string   // where it is otherwise, below the home
	Parts    []string // below the root; ".": all of it
	Others   []string // further directories below the home
	Shims    string   // below the root: "pip install" and its kin write there what starts the installed programs
}

// Toolchains lists no credentials: where a root holds some, only its other parts are named.
var Toolchains = []Toolchain{
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

// toolchainTrees are the directories of Toolchains, below a home.
var toolchainTrees = func() (trees []string) {
	for _, t := range Toolchains {
		for _, part := range t.Parts {
			trees = append(trees, path.Join(t.Root, part))
		}
		trees = append(trees, t.Others...)
	}
	return trees
}()

// homeTrees are the directories of a home to which presets let no tool write, with those of settings and build caches.
var homeTrees = append([]string{
	".config", ".cache/go-build", ".npm/_cacache", ".gradle/caches", ".m2/repository", ".ivy2/cache", ".nuget/packages",
}, toolchainTrees...)
