package guard

// DefaultNames returns the names protected in a writable directory, each with its kind. What they have in
// common: a program outside the sandbox runs, or is told what to run, by what stands there.
func DefaultNames() []Pattern {
	names := []Pattern{
		{".git", GitFile}, // a file here sends git to a repository of its author's choice
		{".git/hooks", Whole},
		{".git/config", GitConfig},
		{".git/config.worktree", Whole},
		{".git/commondir", Whole},
		{".git/info/attributes", Whole},
		{".git/remotes", Whole}, // git's older places for the URL of a remote
		{".git/branches", Whole},
		{".git/worktrees/*/commondir", CommonDir},
		{".git/worktrees/*/config.worktree", Whole},
		{".git/worktrees/*/config", Whole}, // these three count if its commondir is gone
		{".git/worktrees/*/hooks", Whole},
		{".git/worktrees/*/info/attributes", Whole},
		{".git/modules/**/hooks", Whole}, // a submodule's name may hold slashes
		{".git/modules/**/config", GitConfig},
		{".git/modules/**/config.worktree", Whole},
		{".git/modules/**/commondir", Whole},
		{".git/modules/**/info/attributes", Whole},
	}
	for _, n := range []string{
		".holdfast-*", // the supervisor's copies, before they are in place
		".gitconfig", ".gitmodules",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout",
		".ripgreprc", ".envrc", ".mcp.json",
		".vscode", ".idea", ".claude", ".codex", ".cursor", ".gemini", ".agents", ".devcontainer", ".devcontainer.json", ".husky",
	} {
		names = append(names, Pattern{Path: n})
	}
	return names
}

// DefaultHidden returns the names whose content a workspace policy may ask to keep unread.
func DefaultHidden() []string { return []string{".env", ".env.*"} }
