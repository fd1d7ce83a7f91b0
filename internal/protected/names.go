package protected

// A Name is one of the names protected in a writable directory, with what obeys it.
type Name struct {
	Pattern
	Build bool   // a file of the build and of the project's own tools, which tools may have to write: see Protect.BuildFiles of package sandbox
	Why   string // which program runs it, or is told by it what to run
}

// Names returns the names protected in a writable directory. What they have in common: a program outside the
// sandbox runs, or is told what to run, by what stands there, as soon as it is started in that directory or opens it. Instructions for agents in
// prose (CLAUDE.md, AGENTS.md) are not among them, nor are files that count only when their program is told to build.
func Names() []Name { return append([]Name(nil), names[:]...) }

// Patterns returns the patterns of Names.
func Patterns() []Pattern {
	var list []Pattern
	for i := range names {
		list = append(list, names[i].Pattern)
	}
	return list
}

var names = [...]Name{
	{Pattern{".git", GitFile}, false, "git: a file here sends it to a repository of its author's choice"},
	{Pattern{".git/hooks", Whole}, false, "git runs them"},
	{Pattern{".git/config", GitConfig}, false, "git: hooks, filters, editors, pagers, aliases, helpers"},
	{Pattern{".git/config.worktree", Whole}, false, "git: as config"},
	{Pattern{".git/commondir", Whole}, false, "git: another directory's configuration and hooks would count"},
	{Pattern{".git/info/attributes", Whole}, false, "git: chooses filters and merge drivers"},
	{Pattern{".git/remotes", Whole}, false, "git: the older place of a remote's URL"},
	{Pattern{".git/branches", Whole}, false, "git: as remotes"},
	{Pattern{".git/worktrees/*/commondir", CommonDir}, false, "git: as commondir"},
	{Pattern{".git/worktrees/*/config.worktree", Whole}, false, "git: as config"},
	{Pattern{".git/worktrees/*/config", Whole}, false, "git: counts if the worktree's commondir is gone"},
	{Pattern{".git/worktrees/*/hooks", Whole}, false, "git: as config of a worktree"},
	{Pattern{".git/worktrees/*/info/attributes", Whole}, false, "git: as config of a worktree"},
	{Pattern{".git/modules/**/hooks", Whole}, false, "git runs them; a submodule's name may hold slashes"},
	{Pattern{".git/modules/**/config", GitConfig}, false, "git: as config"},
	{Pattern{".git/modules/**/config.worktree", Whole}, false, "git: as config"},
	{Pattern{".git/modules/**/commondir", Whole}, false, "git: as commondir"},
	{Pattern{".git/modules/**/info/attributes", Whole}, false, "git: chooses filters and merge drivers"},
	{Pattern{".gitconfig", Whole}, false, "git, where the directory is a HOME"},
	{Pattern{".gitmodules", GitModules}, false, "git: where submodules come from; harmless lines may be written"},
	{Pattern{".gitmodules.lock", Lock}, false, "git: becomes .gitmodules"},

	{Pattern{".holdfast-*", Whole}, false, "the supervisor's copies, before they are in place"},

	{Pattern{".hg", Whole}, false, "Mercurial: hooks, aliases; hg recover writes where its journal says"},
	{Pattern{".sl", Whole}, false, "Sapling: as .hg"},
	{Pattern{".svn", Whole}, false, "Subversion: a repository here whose hooks a commit runs"},
	{Pattern{".bzr", Whole}, false, "Bazaar and Breezy: editors, signing programs"},
	{Pattern{"_darcs", Whole}, false, "darcs: hooks"},
	{Pattern{"CVS", Whole}, false, "CVS: where the repository is, and the program that reaches it"},
	{Pattern{".fslckout*", Whole}, false, "Fossil: a repository whose settings name programs; .fslckout-journal is written into it"},
	{Pattern{"_FOSSIL_*", Whole}, false, "Fossil, as .fslckout"},
	{Pattern{".fos", Whole}, false, "Fossil, as .fslckout"},
	{Pattern{".fos-*", Whole}, false, "Fossil, as .fslckout"},
	{Pattern{".jj/repo", GitFile}, false, "Jujutsu: a file here sends it to a repository with another config.toml"},
	{Pattern{".jj/repo/config.toml", Whole}, false, "Jujutsu: editors, diff tools, signing programs, aliases"},
	{Pattern{".jj/workspace-config.toml", Whole}, false, "Jujutsu: as config.toml"},

	{Pattern{".bashrc", Whole}, false, "bash, where the directory is a HOME"},
	{Pattern{".bash_profile", Whole}, false, "bash, as .bashrc"},
	{Pattern{".bash_login", Whole}, false, "bash, as .bashrc"},
	{Pattern{".bash_logout", Whole}, false, "bash, as .bashrc"},
	{Pattern{".bash_aliases", Whole}, false, "bash, as .bashrc"},
	{Pattern{".profile", Whole}, false, "sh and login managers, where the directory is a HOME"},
	{Pattern{".xprofile", Whole}, false, "login managers, where the directory is a HOME"},
	{Pattern{".zshrc", Whole}, false, "zsh, where the directory is a HOME or ZDOTDIR"},
	{Pattern{".zprofile", Whole}, false, "zsh, as .zshrc"},
	{Pattern{".zshenv", Whole}, false, "zsh, as .zshrc"},
	{Pattern{".zlogin", Whole}, false, "zsh, as .zshrc"},
	{Pattern{".zlogout", Whole}, false, "zsh, as .zshrc"},
	{Pattern{".kshrc", Whole}, false, "ksh, where the directory is a HOME"},
	{Pattern{".cshrc", Whole}, false, "csh and tcsh, where the directory is a HOME"},
	{Pattern{".tcshrc", Whole}, false, "tcsh, as .cshrc"},
	{Pattern{".login", Whole}, false, "csh and tcsh, as .cshrc"},
	{Pattern{".inputrc", Whole}, false, "readline: keys that type commands"},
	{Pattern{".envrc", Whole}, false, "direnv"},
	{Pattern{".direnv", Whole}, false, "direnv: what .envrc loads"},
	{Pattern{".ripgreprc", Whole}, false, "ripgrep: a preprocessor's name"},

	{Pattern{".gdbinit", Whole}, false, "gdb"},
	{Pattern{".lldbinit*", Whole}, false, "lldb"},
	{Pattern{".pdbrc", Whole}, false, "Python's debugger"},
	{Pattern{".irbrc", Whole}, false, "irb, Ruby's shell"},
	{Pattern{".irb/irbrc", Whole}, false, "irb, as .irbrc"},
	{Pattern{"irb.rc", Whole}, false, "irb, as .irbrc"},
	{Pattern{"_irbrc", Whole}, false, "irb, as .irbrc"},
	{Pattern{"$irbrc", Whole}, false, "irb, as .irbrc"},
	{Pattern{".pryrc", Whole}, false, "pry"},
	{Pattern{".ghci", Whole}, false, "GHCi"},
	{Pattern{".octaverc", Whole}, false, "Octave"},
	{Pattern{".ocamlinit", Whole}, false, "OCaml's toplevel and utop"},
	{Pattern{".iex.exs", Whole}, false, "IEx, Elixir's shell"},
	{Pattern{".perldb", Whole}, false, "Perl's debugger"},
	{Pattern{".Rprofile", Whole}, false, "R"},
	{Pattern{".Renviron", Whole}, false, "R: variables, such as that which names another .Rprofile"},
	{Pattern{".exrc", Whole}, false, "vi, Vim and Neovim"},
	{Pattern{".vimrc", Whole}, false, "Vim, with exrc"},
	{Pattern{".gvimrc", Whole}, false, "gvim, with exrc"},
	{Pattern{".nvimrc", Whole}, false, "Neovim"},
	{Pattern{".nvim.lua", Whole}, false, "Neovim"},
	{Pattern{".lazy.lua", Whole}, false, "lazy.nvim, a plug-in manager of Neovim"},
	{Pattern{".helix", Whole}, false, "Helix: language servers, formatters"},
	{Pattern{".dir-locals*", Whole}, false, "Emacs: forms that are evaluated"},

	{Pattern{".vscode", Whole}, false, "Visual Studio Code and its kin: tasks, paths of programs"},
	{Pattern{"*.code-workspace", Whole}, false, "Visual Studio Code: as .vscode"},
	{Pattern{"*.sublime-project", Whole}, false, "Sublime Text: build systems, settings of plug-ins"},
	{Pattern{".devcontainer", Whole}, false, "Visual Studio Code and others: commands on the host"},
	{Pattern{".devcontainer.json", Whole}, false, "as .devcontainer"},
	{Pattern{".idea", Whole}, false, "JetBrains: run configurations, file watchers"},
	{Pattern{".zed", Whole}, false, "Zed: tasks, language servers"},

	{Pattern{".mcp.json", Whole}, false, "agents: servers that are started"},
	{Pattern{".claude", Whole}, false, "Claude Code: hooks, permissions, servers"},
	{Pattern{".codex", Whole}, false, "Codex: servers, permissions, notify programs"},
	{Pattern{".cursor", Whole}, false, "Cursor: servers, hooks"},
	{Pattern{".gemini", Whole}, false, "Gemini CLI: servers, tools"},
	{Pattern{".agents", Whole}, false, "agents: skills with programs"},
	{Pattern{".opencode", Whole}, false, "opencode: plugins, tools"},
	{Pattern{"opencode.json*", Whole}, false, "opencode: servers, formatters"},
	{Pattern{".crush.json", Whole}, false, "Crush: servers, language servers"},
	{Pattern{"crush.json", Whole}, false, "Crush: as .crush.json"},
	{Pattern{".aider.conf.yml", Whole}, false, "aider: test and lint commands"},
	{Pattern{".kiro", Whole}, false, "Kiro: servers, hooks"},
	{Pattern{".roo", Whole}, false, "Roo Code: servers"},
	{Pattern{".continue", Whole}, false, "Continue: servers"},
	{Pattern{".amazonq", Whole}, false, "Amazon Q: servers, hooks"},
	{Pattern{".qwen", Whole}, false, "Qwen Code: servers, tools"},
	{Pattern{".copilot", Whole}, false, "GitHub Copilot CLI: servers"},
	{Pattern{".windsurf", Whole}, false, "Windsurf: servers, hooks"},

	{Pattern{".husky", Whole}, false, "husky: git's hooks run what is in it"},
	{Pattern{".githooks", Whole}, false, "the usual place of core.hooksPath"},

	{Pattern{".cargo/config", Whole}, true, "cargo, in every directory below: wrappers, linkers, runners"},
	{Pattern{".cargo/config.toml", Whole}, true, "cargo, as .cargo/config"},
	{Pattern{".yarnrc*", Whole}, true, "yarn: yarnPath is run, plugins are loaded"},
	{Pattern{".pnpmfile.*", Whole}, true, "pnpm runs it at every install"},
	{Pattern{".mise*", Whole}, true, "mise: hooks, tasks, variables; a file or a directory"},
	{Pattern{"mise.*", Whole}, true, "mise, as .mise.toml: mise.toml, mise.local.toml, mise.NAME.toml"},
	{Pattern{"mise/config*", Whole}, true, "mise, as .mise.toml"},
	{Pattern{"mise/conf.d", Whole}, true, "mise, as .mise.toml"},
	{Pattern{".config/mise*", Whole}, true, "mise, as .mise.toml"},
	{Pattern{".pre-commit-config.yaml", Whole}, true, "pre-commit: what the hook in .git/hooks runs"},
	{Pattern{"lefthook.*", Whole}, true, "lefthook: what the hooks in .git/hooks run"},
	{Pattern{"lefthook-local.*", Whole}, true, "lefthook, as lefthook.yml"},
	{Pattern{".lefthook*", Whole}, true, "lefthook, as lefthook.yml, and its scripts"},
}
