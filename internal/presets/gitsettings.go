package presets

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/internal/trust"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// gitSections are those of git-config(1) and of git-lfs; what other programs have in a user's configuration may be
// anything.
var gitSections = strings.Fields(`
	advice add alias am apply attr author blame branch browser checkout clean clone color column commit committer
	core diff difftool feature fetch filter format fsck gc grep gui guitool help http i18n index init interactive
	lfs log mailinfo mailmap maintenance man merge mergetool notes pack pretty protocol pull push rebase receive
	remote repack rerere reset revert safe sequence showbranch sparse splitindex stash status submodule tag tar
	trailer transfer uploadarchive uploadpack url user versionsort web worktree`)

// gitOutside are settings, by section and variable, that stay outside without a note: what is missing is an error of
// git's (credentials, keys), or changes how results are shown or found, and not the results.
var gitOutside = strings.Fields(`
	credential.* sendemail.* imap.* gpg.* user.signingkey core.askpass core.sshcommand core.gitproxy core.fsmonitor
	core.fsmonitorhookversion core.pager pager.* log.showsignature http.proxy* http.extraheader http.cookiefile
	http.savecookies http.ssl*key http.sslcert* http.delegation http.emptyauth remote.proxy remote.proxyauthmethod
	core.worktree core.bare core.repositoryformatversion`)

// gitFiles are settings that name a file of data.
var gitFiles = strings.Fields(`
	core.excludesfile core.attributesfile commit.template mailmap.file format.signaturefile http.sslcainfo`)

const (
	mostGitFiles = 64 // that are read of a user's configuration, includes among them
	mostIncludes = 10 // one in another, as in git
	mostLeft     = 12 // that a note names
)

// A gitSetting is one that git has listed.
type gitSetting struct {
	section, sub, name, value string
	bare                      bool // it has no value, which means true
}

// gitHome makes the configuration of git for the tool's home from the user's. Git reads each file; its includes are
// copied with their conditions, which git judges inside, for the repository and the branch that it works in then.
type gitHome struct {
	*Builder
	user   string // the user's home, as HOME has it; "": there is none
	files  []policy.File
	left   []string // what is not as outside
	read   int
	failed bool // git cannot be asked
}

// gitConfig returns the files, and a note where something is not as outside. The workspaces are safe to git although
// they may be another user's; repositories that git init makes get no hooks, which could not be written there.
func (b *Builder) gitConfig(workspaces ...string) []policy.File {
	g := gitHome{Builder: b}
	if home := b.env("HOME"); validPath(home, pathrule.Read) {
		g.user = home
	}
	var text strings.Builder
	if off := b.env("GIT_CONFIG_NOSYSTEM"); off == "" || off == "0" || off == "false" {
		if system := b.env("GIT_CONFIG_SYSTEM"); system != "" {
			g.take(&text, system, 0, false)
		} else {
			g.take(&text, "/etc/gitconfig", 0, true)
		}
	}
	xdg := b.env("XDG_CONFIG_HOME")
	if !validPath(xdg, pathrule.Read) {
		xdg = pathrule.Join(g.user, ".config")
	}
	files := []string{xdg + "/git/config", pathrule.Join(g.user, ".gitconfig")}
	if g.user == "" {
		files = nil
	} else {
		for _, s := range []gitSetting{
			{section: "core", name: "excludesfile", value: xdg + "/git/ignore"},
			{section: "core", name: "attributesfile", value: xdg + "/git/attributes"},
		} {
			if b.Find(s.value).Err == nil {
				g.put(&text, s, true)
			}
		}
	}
	if file := b.env("GIT_CONFIG_GLOBAL"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		g.take(&text, file, 0, false)
	}
	n, _ := strconv.Atoi(b.env("GIT_CONFIG_COUNT"))
	var given []gitSetting
	for i := range min(n, 1000) {
		if s, ok := newGitSetting(b.env("GIT_CONFIG_KEY_" + strconv.Itoa(i))); ok {
			s.value = b.env("GIT_CONFIG_VALUE_" + strconv.Itoa(i))
			given = append(given, s)
		}
	}
	g.takeAll(&text, given, "/", 0, false, true)
	if b.env("GIT_CONFIG_PARAMETERS") != "" {
		g.leave("GIT_CONFIG_PARAMETERS of the environment")
	}
	text.WriteString("[init]\n\ttemplateDir =\n[gc]\n\treflogExpire = never\n\treflogExpireUnreachable = never\n")
	text.WriteString("\tworktreePruneExpire = never\n")
	for _, dir := range workspaces {
		text.WriteString("[safe]\n\tdirectory = " + quoteGit(dir) + "\n\tdirectory = " + quoteGit(dir+"/*") + "\n")
	}
	if len(g.left) > mostLeft {
		g.left = append(g.left[:mostLeft:mostLeft], strconv.Itoa(len(g.left)-mostLeft)+" more")
	}
	if len(g.left) > 0 {
		b.notes = append(b.notes, policy.Note{At: "Files.Make", Rule: "the user's settings of git", Class: "in part",
			Why: "not as outside: " + strings.Join(g.left, "; ")})
	}
	return append([]policy.File{{Path: pathrule.Join(b.home, ".gitconfig"), Data: text.String(), Mode: 0o644}}, g.files...)
}

// leave notes what is not as outside.
func (g *gitHome) leave(what string) {
	if what = errtext.Printable(what); !slices.Contains(g.left, what) {
		g.left = append(g.left, what)
	}
}

// take writes what a file has, and what it includes. Includes alone are taken of one that is shown inside itself.
func (g *gitHome) take(text *strings.Builder, file string, depth int, includesAlone bool) {
	settings, trusted, problem := g.settingsOf(file)
	if problem != "" {
		g.leave(file + ", which " + problem)
	}
	g.takeAll(text, settings, file, depth, includesAlone, trusted)
}

// takeAll writes settings of a file, and what they include.
func (g *gitHome) takeAll(
	text *strings.Builder, settings []gitSetting, file string, depth int, includesAlone, trusted bool,
) {
	for _, s := range settings {
		if s.name != "path" || s.section != "include" && s.section != "includeif" {
			if !includesAlone {
				g.put(text, s, trusted)
			}
			continue
		}
		named := g.expand(s.value)
		if !path.IsAbs(named) {
			named = path.Join(path.Dir(file), named)
		}
		switch {
		case includesAlone && g.shows(g.Find(named).Path):
		case depth == mostIncludes:
			g.leave(file + ", which includes more than " + strconv.Itoa(mostIncludes) + " files in each other")
		case policy.HoldsSecret("", s.sub):
			g.leave("includeIf.path, whose condition looks like a secret")
		case s.section == "include":
			g.take(text, named, depth+1, false)
		default:
			var included strings.Builder
			if g.take(&included, named, depth+1, false); included.Len() > 0 {
				name := g.add("included", included.String())
				text.WriteString("[includeIf " + quoteGit(g.condition(s.sub, file)) + "]\n\tpath = " + quoteGit(name) + "\n")
			}
		}
	}
}

// condition makes a condition independent of where HOME is and where the file lies that has it (git-config(1),
// "Conditional includes").
func (g *gitHome) condition(c, file string) string {
	keyword, pattern, _ := strings.Cut(c, ":")
	if keyword != "gitdir" && keyword != "gitdir/i" {
		return c
	}
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		return keyword + ":" + pathrule.Join(g.Find(g.user).Path, rest)
	}
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		return keyword + ":" + path.Dir(g.Find(file).Path) + "/" + rest
	}
	return c
}

// expand follows "~/" and "~USER/", as git does in paths.
func (g *gitHome) expand(p string) string {
	name, rest, ok := strings.Cut(p, "/")
	name, tilde := strings.CutPrefix(name, "~")
	if !ok || !tilde {
		return p
	}
	home := g.user
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return p
		}
		home = u.HomeDir
	}
	return path.Join(home, rest)
}

// add makes a file and returns its name for git.
func (g *gitHome) add(kind, text string) string {
	name := ".config/git/" + kind + "/" + strconv.Itoa(len(g.files)+1)
	g.files = append(g.files, policy.File{Path: pathrule.Join(g.home, name), Data: text, Mode: 0o644})
	return "~/" + name
}

// put writes one setting, if it may be inside. Trusted: no tool can have written it, so that a file which it names may
// be copied.
func (g *gitHome) put(text *strings.Builder, s gitSetting, trusted bool) {
	key := s.section + "." + s.name
	switch on := s.bare || slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(s.value)); {
	case key == "commit.gpgsign", key == "tag.gpgsign", key == "tag.forcesignannotated", key == "push.gpgsign":
		if on || s.value == "if-asked" {
			g.leave(key + ": nothing is signed inside")
		}
		return
	case key == "init.templatedir":
		g.leave(key + ": a new repository has no hooks of it")
		return
	case slices.ContainsFunc(gitOutside, func(pattern string) bool { ok, _ := path.Match(pattern, key); return ok }):
		return
	case !slices.Contains(gitSections, s.section):
		g.leave(s.section + ".*, of another program")
		return
	}
	if clear := gitUser.ReplaceAllString(s.sub, "$1"); policy.URLWithUser(s.sub) {
		g.leave(key + ", whose URL has a user or a secret, is without it")
		s.sub = clear
	}
	if clear := gitUser.ReplaceAllString(s.value, "$1"); policy.URLWithUser(s.value) {
		g.leave(key + ", whose URL has a user or a secret, is without it")
		s.value = clear
	}
	if policy.HoldsSecret("", s.value) || policy.HoldsSecret("", s.sub) ||
		s.section != "alias" && policy.HoldsSecret(s.name, s.value) {
		g.leave(key + ", which looks like a secret")
		return
	}
	if slices.Contains(gitFiles, key) || key == "core.hookspath" {
		var problem string
		if s.value, problem = g.file(g.expand(s.value), key != "core.hookspath", trusted); problem != "" {
			g.leave(key + " " + s.value + ", which " + problem)
			// It stands all the same: without the hooks' path git would run others, and the policy may show the file.
		}
	}
	header := "[" + s.section
	if s.sub != "" {
		header += " " + quoteGit(s.sub)
	}
	text.WriteString(header + "]\n\t" + s.name)
	if !s.bare {
		text.WriteString(" = " + quoteGit(s.value))
	}
	text.WriteByte('\n')
}

// gitUser finds the user in a URL.
var gitUser = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s,;"']*@`)

// file returns the path inside of what a setting names: its own where that is shown or where nothing is, else a copy's.
func (g *gitHome) file(p string, copied, trusted bool) (inside, problem string) {
	at := g.Find(p)
	if !path.IsAbs(p) || errors.Is(at.Err, fs.ErrNotExist) ||
		at.Err == nil && (g.shows(at.Path) || pathrule.WithinAny(at.Path, g.tree)) {
		return p, ""
	}
	switch {
	case !copied:
		return p, "is not shown inside"
	case !trusted:
		return p, "is named in a file that a tool could have written"
	case at.Err != nil, g.exchangeable(at.Path), g.holdsSecret(at.Path):
		return p, "may not be copied: it is a secret, or a tool could have written it"
	}
	f, err := regularfile.Open(at.Path)
	if err != nil {
		return p, "cannot be read"
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	moved := name != at.Path && !g.places.Holds(at.Path) // a link came into the way, in another workspace
	if err != nil || len(data) > maxConfig || policy.HoldsSecret("", string(data)) || moved {
		return p, "cannot be copied"
	}
	return g.add("copied", string(data)), ""
}

// gitKnown has what git has said of texts: a file is asked about once, for as long as it is unchanged.
var gitKnown struct {
	sync.Mutex
	texts map[string][]gitSetting
}

// settingsOf returns what git reads in a file, without its includes. Trusted: no tool can have written it.
func (g *gitHome) settingsOf(file string) (list []gitSetting, trusted bool, problem string) {
	if !validPath(file, pathrule.Read) {
		return nil, false, "has no absolute and clean path"
	}
	at := g.Find(file)
	g.read++
	switch {
	case errors.Is(at.Err, fs.ErrNotExist):
		return nil, false, ""
	case at.Err != nil, g.exchangeable(at.Path):
		return nil, false, "a tool could have written"
	case !at.Mode.IsRegular():
		return nil, false, "is not a regular file"
	case g.read > mostGitFiles || g.failed:
		return nil, false, "was not read"
	}
	text, err := regularfile.Read(at.Path, maxConfig)
	if err != nil {
		return nil, false, "cannot be read"
	}
	gitKnown.Lock()
	list, known := gitKnown.texts[string(text)]
	gitKnown.Unlock()
	if known {
		return list, g.places.Holds(at.Path), ""
	}
	program, err := g.places.Program("git", g.env("PATH"))
	if err != nil {
		g.failed = true
		return nil, false, "was not read: PATH has git in no place that no tool could have written"
	}
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_DIR=/dev/null", "LC_ALL=C"}
	out, err := trust.Run(program, env, "config", "--file", at.Path, "--no-includes", "--list", "-z")
	if err != nil {
		return nil, false, "git cannot read"
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, valued := strings.Cut(entry, "\n")
		if s, ok := newGitSetting(key); ok {
			s.value, s.bare = value, !valued
			list = append(list, s)
		}
	}
	if again, err := regularfile.Read(at.Path, maxConfig); err == nil && string(again) == string(text) {
		gitKnown.Lock()
		if gitKnown.texts == nil || len(gitKnown.texts) > mostGitFiles {
			gitKnown.texts = map[string][]gitSetting{}
		}
		gitKnown.texts[string(text)] = list
		gitKnown.Unlock()
	}
	return list, g.places.Holds(at.Path), ""
}

// newGitSetting takes a key apart: section, subsection, which may have dots, and variable.
func newGitSetting(key string) (s gitSetting, ok bool) {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first <= 0 || last == len(key)-1 || strings.ContainsAny(key, "\x00\n") {
		return gitSetting{}, false
	}
	s.section, s.name = strings.ToLower(key[:first]), strings.ToLower(key[last+1:])
	if last > first {
		s.sub = key[first+1 : last]
	}
	return s, true
}

// quoteGit writes a value so that git reads it back unchanged.
func quoteGit(v string) string {
	return `"` + gitQuoter.Replace(v) + `"`
}

var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
