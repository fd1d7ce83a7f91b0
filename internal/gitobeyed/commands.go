package gitobeyed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs are the keys, with the subsection left out, whose value git runs or gives to a shell: git-config(1), gitattributes(5). With them are all
// of pager, and what begins with "!" of alias and submodule.update. Those of lfs are git-lfs's.
var programs = []string{
	"core.askpass", "core.alternaterefscommand", "core.editor", "core.fsmonitor", "core.gitproxy", "core.pager", "core.sshcommand",
	"browser.cmd", "browser.path", "credential.helper", "diff.command", "diff.external", "diff.textconv", "difftool.cmd", "difftool.path",
	"filter.clean", "filter.process", "filter.smudge", "gc.recentobjectshook", "gpg.defaultkeycommand", "gpg.program", "guitool.cmd", "hook.command", "imap.tunnel",
	"instaweb.httpd", "interactive.difffilter", "lfs.clean", "lfs.path", "lfs.smudge", "man.cmd", "man.path", "merge.driver", "mergetool.cmd", "mergetool.path", "remote.receivepack",
	"remote.uploadpack", "sendemail.cccmd", "sendemail.headercmd", "sendemail.sendmailcmd", "sendemail.smtpserver", "sendemail.tocmd", "sequence.editor",
	"svn.authorsprog", "tar.command", "trailer.cmd", "trailer.command", "uploadpack.packobjectshook",
}

// runs reports whether git runs what a setting says.
func runs(s setting) bool {
	switch section, _, _ := strings.Cut(s.key, "."); section {
	case "alias":
		return strings.HasPrefix(s.value, "!")
	case "pager":
		return true
	}
	return slices.Contains(programs, s.key) || s.key == "submodule.update" && strings.HasPrefix(s.value, "!")
}

// command notes the files that a command names, which git runs in a work tree: each word that is a path, whether there is such a file or not, and
// those without a slash that are files of the work tree's top, for an interpreter's sake; but not in an alias, where they are data as a rule. No directory is
// noted: an alias may name one as data.
func (f *finder) command(tree, command string) {
	command, alias := strings.CutPrefix(command, "!")
	at, ok := f.walk(tree, noLink)
	if !ok || !f.spend(len(command)/64) {
		return
	}
	for _, word := range words(command) {
		if !f.spend(1 + len(word)/64) {
			return
		}
		if !strings.Contains(word, "/") {
			if !alias && there(at+"/"+word) {
				f.file(at+"/"+word, false)
			}
			for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
				if !filepath.IsAbs(dir) {
					f.file(at+"/"+dir+"/"+word, true)
				}
			}
			continue
		}
		if !strings.ContainsAny(word, "$`") {
			f.file(f.named(at, word), true)
		}
		for rest := word; strings.ContainsAny(command, "$`"); { // $PWD/clean, $(git rev-parse --show-toplevel)/clean
			if _, rest, ok = strings.Cut(rest, "/"); !ok || !f.spend(1) {
				break
			}
			f.file(at+"/"+rest, false)
		}
	}
}

// file notes a path where a file is, or, with absent, where nothing is.
func (f *finder) file(p string, absent bool) {
	if p == "" {
		return
	}
	at, ok := f.walk(p, noLink)
	if !ok {
		return
	}
	if info, err := os.Lstat(at); err == nil && !info.IsDir() || err != nil && absent {
		f.add(p, false, false)
	}
}

// words cuts what can be a path out of a shell's command: its words, without quotes and backslashes, and their pieces, for what a second shell runs.
func words(command string) (list []string) {
	var word []byte
	var quote byte
	end := func() {
		whole := string(word)
		for _, w := range append([]string{whole}, strings.FieldsFunc(whole, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&()<>=,!", r) })...) {
			if isPath(w) && !slices.Contains(list[max(0, len(list)-16):], w) {
				list = append(list, w)
			}
		}
		word = word[:0]
	}
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(command):
			i++
			word = append(word, command[i])
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && strings.IndexByte(" \t\r\n;|&()<>", c) >= 0:
			end()
		default:
			word = append(word, c)
		}
	}
	end()
	return list
}

// isPath reports whether a word can be a program's path: it is no option, pattern, URL or range of revisions.
func isPath(word string) bool {
	if word == "" || word[0] == '-' || strings.ContainsAny(word, ":*?[]{}^%\x00\n") {
		return false
	}
	for part := range strings.SplitSeq(word, "/") {
		if part != ".." && strings.Contains(part, "..") {
			return false
		}
	}
	return true
}
