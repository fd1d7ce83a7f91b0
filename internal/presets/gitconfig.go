package presets

import "strings"

// gitKeys are the settings of a user's git configuration that the tool's home
// gets: who the user is, and how git behaves. None of them names a program, a
// file, a server or a secret. "*" stands for any last part.
var gitKeys = []string{
	"user.name", "user.email", "user.useconfigonly", "author.name", "author.email", "committer.name", "committer.email",
	"init.defaultbranch", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath", "core.abbrev", "core.whitespace", "core.precomposeunicode",
	"pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags", "fetch.prune", "merge.ff", "merge.conflictstyle", "merge.renames",
	"diff.algorithm", "diff.colormoved", "diff.colormovedws", "diff.renames", "diff.mnemonicprefix", "diff.noprefix", "diff.context", "diff.wserrorhighlight",
	"rebase.autosquash", "rebase.autostash", "rebase.updaterefs", "rerere.enabled", "branch.sort", "branch.autosetuprebase", "branch.autosetupmerge", "tag.sort",
	"log.date", "log.abbrevcommit", "log.decorate", "log.follow", "status.short", "status.branch", "status.showuntrackedfiles", "commit.verbose", "commit.status",
	"blame.date", "column.ui", "advice.*", "color.*", "feature.manyfiles", "index.version", "format.pretty", "i18n.commitencoding",
}

// gitConfig writes the configuration of the tool's home from that of the user.
// The workspaces are safe to git although they may be another user's; repositories
// that git init makes get no hooks, which could not be written there.
func gitConfig(user string, workspaces ...string) string {
	var b strings.Builder
	section := ""
	for _, s := range parseGitConfig(user) {
		if s.section != section {
			section = s.section
			b.WriteString(gitSection(section) + "\n")
		}
		b.WriteString("\t" + s.key + " = " + quoteGit(s.value) + "\n")
	}
	b.WriteString("[init]\n\ttemplateDir =\n[gc]\n\treflogExpire = never\n\treflogExpireUnreachable = never\n\tworktreePruneExpire = never\n")
	for _, dir := range workspaces {
		b.WriteString("[safe]\n\tdirectory = " + quoteGit(dir) + "\n\tdirectory = " + quoteGit(dir+"/*") + "\n")
	}
	return b.String()
}
