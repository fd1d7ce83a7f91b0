package gitattack

import (
	"math/rand/v2"
	"strings"
)

// A skeleton is an attack that works where no rule is in its way: what it does, in which fixture, and which of
// the user's commands falls for it.
type skeleton struct {
	name    string
	fixture string
	ops     func(w *world, r *rand.Rand) []op
	user    []command
}

// say makes the user's commands of lines: a directory, a colon, and git's arguments.
func say(lines ...string) []command {
	var list []command
	for _, l := range lines {
		dir, args, _ := strings.Cut(l, ":")
		list = append(list, command{Dir: dir, Args: strings.Fields(args)})
	}
	return list
}

func write(path string, text []byte) op { return op{Do: "write", Path: path, Text: text} }
func program(path string, w *world) op {
	return op{Do: "write", Path: path, Text: w.script(), Mode: 0o755}
}
func git(dir string, args ...string) op     { return op{Do: "git", Path: dir, Args: args} }
func link(path, text string) op             { return op{Do: "symlink", Path: path, To: text} }
func unlink(path string) op                 { return op{Do: "unlink", Path: path} }
func mkdir(path string) op                  { return op{Do: "mkdir", Path: path} }
func rename(from, to string) op             { return op{Do: "rename", Path: from, To: to} }
func lines(w *world, text ...string) []byte { return expand(w, strings.Join(text, "\n")+"\n") }

// repository makes what git takes for a repository, with a command in its configuration and a hook.
func repository(w *world, dir, worktree string) []op {
	d := dir + "/"
	if dir == "" {
		d = ""
	}
	return []op{
		mkdir(d + "objects"), mkdir(d + "refs/heads"), write(d+"HEAD", []byte("ref: refs/heads/main\n")),
		write(d+"config", lines(w, "[core]", "repositoryformatversion = 0", "bare = false", "worktree = "+worktree, "fsmonitor = \"%s; false\"")),
	}
}

// bare makes a repository that runs a program at each push to it.
func bare(w *world, dir string) []op {
	return []op{
		mkdir(dir + "/objects"), mkdir(dir + "/refs/heads"), write(dir+"/HEAD", []byte("ref: refs/heads/main\n")),
		write(dir+"/config", []byte("[core]\n\tbare = true\n")), program(dir+"/hooks/pre-receive", w),
	}
}

func all(lists ...[]op) []op {
	var out []op
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// rebasing makes the state of a rebase that the user seems to have begun.
func rebasing(w *world, todo string) []op {
	const d = ".git/rebase-merge/"
	return []op{
		git("", "checkout", "-q", "--detach"),
		write(d+"head-name", []byte("refs/heads/main\n")), write(d+"onto", lines(w, "{head}")), write(d+"orig-head", lines(w, "{head}")),
		write(d+"interactive", nil), write(d+"done", nil), write(d+"msgnum", []byte("1\n")), write(d+"end", []byte("2\n")), write(d+"git-rebase-todo", lines(w, todo)),
	}
}

func mailing(w *world, opt string) []op {
	const d = ".git/rebase-apply/"
	ops := []op{write(d+"next", []byte("1\n")), write(d+"last", []byte("2\n")), write(d+"applying", nil), write(d+"abort-safety", lines(w, "{head}")), write(d+"0001", patch()), write(d+"0002", patch())}
	for _, n := range []string{"threeway", "quiet", "sign", "utf8", "keep", "messageid", "scissors"} {
		ops = append(ops, write(d+n, []byte("f\n")))
	}
	return append(ops, write(d+"apply-opt", lines(w, opt)))
}

// simple makes a skeleton's operations that need nothing random.
func simple(f func(w *world) []op) func(*world, *rand.Rand) []op {
	return func(w *world, _ *rand.Rand) []op { return f(w) }
}

// shapeConfig is the configuration of a repository whose work tree is the workspace.
func shapeConfig(w *world) []byte {
	return expand(w, "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {ws}\n\tfsmonitor = \"%s; false\"\n")
}

const monitor = "[core]\n\tfsmonitor = \"%s; false\"\n"

var skeletons = []skeleton{
	{"hook", "plain", simple(func(w *world) []op { return []op{program(".git/hooks/post-checkout", w)} }), say(":checkout -q -b new")},
	{"hook beside the user's", "hook", simple(func(w *world) []op { return []op{program(".git/hooks/post-commit", w)} }), say(":commit -q --allow-empty -m user")},
	{"hook renamed into place", "plain", simple(func(w *world) []op {
		return []op{program("n/post-checkout", w), rename(".git/hooks", "old"), rename("n", ".git/hooks")}
	}), say(":checkout -q -b new")},
	{"configuration", "plain", simple(func(w *world) []op {
		return []op{{Do: "write", Path: ".git/config", Text: expand(w, monitor), Flag: 0x401}}
	}), say(":status")},
	{"configuration replaced", "plain", simple(func(w *world) []op { return []op{{Do: "replace", Path: ".git/config", Text: expand(w, monitor)}} }), say(":status")},
	{"configuration by git", "plain", simple(func(w *world) []op { return []op{git("", "config", "core.fsmonitor", w.shout()+"; false")} }), say(":status")},
	{"configuration by a hard link", "plain", simple(func(w *world) []op {
		return []op{{Do: "link", Path: ".git/config", To: "c"}, {Do: "write", Path: "c", Text: expand(w, monitor)}}
	}), say(":status")},
	{"repository exchanged", "plain", simple(func(w *world) []op {
		return []op{{Do: "copy", Path: ".git", To: "n"}, write("n/config", expand(w, "[core]\n\trepositoryformatversion = 0\n"+monitor)), rename(".git", "old"), rename("n", ".git")}
	}), say(":status")},
	{"commondir", "plain", simple(func(w *world) []op {
		return all(repository(w, "evil", w.ws), []op{{Do: "write", Path: ".git/commondir", Text: expand(w, "{ws}/evil\n")}})
	}), say(":status")},
	{"remotes", "plain", simple(func(w *world) []op {
		return all(bare(w, "evil"), []op{git("", "remote", "remove", "origin"), write(".git/remotes/origin", expand(w, "URL: {ws}/evil\n"))})
	}), say(":push -q origin HEAD:refs/heads/z")},
	{"linked worktree's own file", "linked", simple(func(w *world) []op {
		return all(repository(w, "evil", w.ws), []op{unlink(".git"), write(".git", expand(w, "gitdir: {ws}/evil\n"))})
	}), say(":status")},
	{"submodule's own file", "submodule", simple(func(w *world) []op {
		return all(repository(w, "evil", w.ws+"/lib"), []op{unlink("lib/.git"), write("lib/.git", []byte("gitdir: ../evil\n"))})
	}), say(":status")},
	{"submodule's configuration", "submodule", simple(func(w *world) []op {
		return []op{{Do: "write", Path: ".git/modules/lib/config", Text: expand(w, monitor), Flag: 0x401}}
	}), say(":status")},
	{"F2 bent file", "plain", simple(func(w *world) []op {
		return all(repository(w, "evil", w.ws+"/s"), []op{
			mkdir("evil/sub"), mkdir(".git/worktrees/w/d"), write(".git/worktrees/w/commondir", []byte("../..\n")), mkdir("s"),
			write("s/.git", []byte("gitdir: ../.git/worktrees/w/d/..\n")), {Do: "rmdir", Path: ".git/worktrees/w/d"}, link(".git/worktrees/w/d", w.ws+"/evil/sub"),
			git("", "update-index", "--add", "--cacheinfo", "160000,"+w.head+",s"),
		})
	}), say(":status")},
	{"F4 embedded repository", "none", simple(func(w *world) []op { return repository(w, "", w.ws) }), say(":status")},
	{"F4 embedded repository below", "none", simple(func(w *world) []op { return repository(w, "src", w.ws+"/src") }), say("src:status")},
	{"F4 embedded repository in a package", "sub-directory", simple(func(w *world) []op { return repository(w, "", w.ws) }), say(":status")},
	{"F4 bare layout", "bare layout", simple(func(w *world) []op { return []op{git("trunk", "config", "core.fsmonitor", w.shout()+"; false")} }), say("trunk:status")},
	{"F4 bare layout's hook", "bare layout", simple(func(w *world) []op { return []op{program(".bare/hooks/post-checkout", w)} }), say("trunk:checkout -q -b new")},
	{"F4 separate directory", "separate inside", simple(func(w *world) []op { return []op{program("repo.dir/hooks/post-checkout", w)} }), say(":checkout -q -b new")},
	{"F6 log", "plain", simple(func(w *world) []op { return []op{unlink(".git/logs/HEAD"), link(".git/logs/HEAD", w.home+"/.bashrc")} }), say(":commit -q --allow-empty -m user")},
	{"F6 state", "plain", func(w *world, r *rand.Rand) []op {
		name := pick(r, []string{"COMMIT_EDITMSG", "ORIG_HEAD", "packed-refs", "FETCH_HEAD", "logs/refs/heads/main"})
		return []op{unlink(".git/" + name), link(".git/"+name, pick(r, []string{w.victim + "/new", w.victim + "/file", w.home + "/.bashrc"}))}
	}, say(":commit -q --allow-empty -m user", ":reset -q --hard HEAD~1", ":fetch -q", ":pack-refs --all")},
	{"F6 directory", "plain", func(w *world, r *rand.Rand) []op {
		name := pick(r, []string{"logs", "refs/heads", "objects", "refs"})
		return []op{{Do: "copy", Path: ".git/" + name, To: "kept"}, {Do: "rmall", Path: ".git/" + name}, link(".git/"+name, w.victim)}
	}, say(":commit -q --allow-empty -m user", ":branch new", ":fetch -q", ":update-ref refs/heads/y "+strings.Repeat("0", 40), ":stash")},
	{"F7 work tree through a link", "plain", simple(func(w *world) []op {
		const m = "x/.git/modules/m"
		return []op{
			git("", "init", "-q", "x"), git("", "init", "-q", "--bare", m), git("", "push", "-q", w.ws+"/"+m, "HEAD:refs/heads/main"),
			git("", "config", "-f", m+"/config", "core.bare", "false"), git("", "config", "-f", m+"/config", "core.worktree", "../../../lnk"),
			mkdir("sub"), write("sub/.git", []byte("gitdir: ../x/.git/modules/m\n")), link("x/lnk", w.victim),
		}
	}), say("sub:checkout -q -f main", "sub:reset -q --hard main")},
	{"F8 worktree's module", "worktree", simple(func(w *world) []op {
		return []op{{Do: "write", Path: ".git/worktrees/wt/modules/lib/config", Text: expand(w, monitor), Flag: 0x401}, program(".git/worktrees/wt/modules/lib/hooks/post-checkout", w)}
	}), say("wt:status", "wt/lib:checkout -q -b new")},
	{"F9 address through proc", "plain", simple(func(w *world) []op {
		return all(bare(w, "evil"), []op{git("", "config", "remote.origin.url", "/proc/self/root"+w.ws+"/evil")})
	}), say(":push -q origin HEAD:refs/heads/z")},
	{"F16 module's remotes", "submodule", simple(func(w *world) []op {
		return all(bare(w, "evil"), []op{git("lib", "remote", "remove", "origin"), write(".git/modules/lib/remotes/origin", expand(w, "URL: {ws}/evil\n"))})
	}), say("lib:push -q origin HEAD:refs/heads/z")},
	{"F16 module's branches", "submodule", simple(func(w *world) []op {
		return all(bare(w, "evil"), []op{git("lib", "remote", "remove", "origin"), write(".git/modules/lib/branches/origin", expand(w, "{ws}/evil#z\n"))})
	}), say("lib:push -q origin HEAD:refs/heads/z")},
	{"F17 forged rebase", "plain", simple(func(w *world) []op { return rebasing(w, "exec %s") }), say(":rebase --continue")},
	{"F17 rebase in progress", "rebase", simple(func(w *world) []op {
		return []op{{Do: "write", Path: ".git/rebase-merge/git-rebase-todo", Text: expand(w, "exec %s\n"), Flag: 0x401}}
	}), say(":rebase --continue")},
	{"F18 hooksPath's target", "hooks path", simple(func(w *world) []op { return []op{program(".githooks/post-checkout", w)} }), say(":checkout -q -b new")},
	{"F18 include's target", "hooks path", simple(func(w *world) []op { return []op{write(".gitlocal", expand(w, monitor))} }), say(":status")},
	{"index with forged names", "plain", simple(func(w *world) []op {
		return []op{program("evil/program", w), git("", "hash-object", "-w", "evil/program"), {Do: "replace", Path: ".git/index", Text: index(w.blob, ".git/hooks/post-checkout", "../victim/new")}}
	}), say(":checkout .", ":checkout -q -b new")},
	{"options of a forged mail", "plain", simple(func(w *world) []op { return mailing(w, " '--build-fake-ancestor={victim}/new'") }), say(":am --skip")},
	{"strategy of a forged rebase", "plain", simple(func(w *world) []op {
		return append(rebasing(w, "pick {topic} topic"), program("git-merge-x/evil", w), write(".git/rebase-merge/strategy", []byte("x/evil\n")))
	}), say(":rebase --continue")},
	{"strategy of a forged cherry-pick", "plain", simple(func(w *world) []op {
		const d = ".git/sequencer/"
		return []op{program("git-merge-x/evil", w), write(d+"todo", lines(w, "pick {head} a", "pick {topic} b")), write(d+"head", lines(w, "{head}")),
			write(d+"abort-safety", lines(w, "{head}")), write(d+"opts", []byte("[options]\n\tstrategy = x/evil\n"))}
	}), say(":cherry-pick --continue")},
	{"shape: HEAD and commondir alone", "none", simple(func(w *world) []op {
		return []op{mkdir("evil/objects"), mkdir("evil/refs/heads"), write("evil/config", expand(w, "[core]\n\tbare = true\n[remote \"origin\"]\n\turl = {ws}\n\tuploadpack = \"%s; false\"\n")),
			write("HEAD", []byte("ref: refs/heads/main\n")), write("commondir", []byte("evil\n"))}
	}), say(":fetch origin")},
	{"shape: commondir in a .git directory", "none", simple(func(w *world) []op {
		return []op{mkdir("evil/objects"), mkdir("evil/refs/heads"), write("evil/config", shapeConfig(w)), write("s/.git/HEAD", []byte("ref: refs/heads/main\n")), write("s/.git/commondir", []byte("../../evil\n"))}
	}), say("s:status")},
	{"shape: objects and refs are files", "none", simple(func(w *world) []op {
		return []op{write("config", shapeConfig(w)), write("HEAD", []byte("ref: refs/heads/main\n")), {Do: "write", Path: "objects", Text: []byte("x"), Mode: 0o755}, {Do: "write", Path: "refs", Text: []byte("x"), Mode: 0o755}}
	}), say(":status")},
	{"shape: objects is a file", "none", simple(func(w *world) []op {
		return []op{write("config", shapeConfig(w)), write("HEAD", []byte("ref: refs/heads/main\n")), {Do: "write", Path: "objects", Text: []byte("x"), Mode: 0o755}, mkdir("refs")}
	}), say(":status")},
	{"shape: HEAD is a link", "none", simple(func(w *world) []op {
		return []op{write("config", shapeConfig(w)), mkdir("objects"), mkdir("refs"), link("HEAD", "refs/heads/main")}
	}), say(":status")},
	{"shape: objects and refs are links", "none", simple(func(w *world) []op {
		return []op{write("config", shapeConfig(w)), write("HEAD", []byte("ref: refs/heads/main\n")), mkdir("src/o"), link("objects", "src/o"), link("refs", "src/o")}
	}), say(":status")},
	{"shape: made executable last", "none", simple(func(w *world) []op {
		return []op{{Do: "write", Path: "objects", Text: []byte("x"), Mode: 0o644}, mkdir("refs"), write("HEAD", []byte("ref: refs/heads/main\n")), write("config", shapeConfig(w)), {Do: "chmod", Path: "objects", Mode: 0o755}}
	}), say(":status")},
	{"shape: links lead to it later", "none", simple(func(w *world) []op {
		return []op{link("objects", "src/o"), link("refs", "src/o"), write("config", shapeConfig(w)), write("HEAD", []byte("ref: refs/heads/main\n")), mkdir("src/o")}
	}), say(":status")},
	{"shape: HEAD is filled last", "none", simple(func(w *world) []op {
		return []op{{Do: "keep", Path: "HEAD", Flag: 0x41}, write("config", shapeConfig(w)), mkdir("objects"), mkdir("refs"), {Do: "put", Path: "HEAD", Text: []byte("ref: refs/heads/main\n")}}
	}), say(":status")},
	{"shape: renamed into its place", "none", simple(func(w *world) []op {
		return []op{write("x/config", shapeConfig(w)), mkdir("x/objects"), mkdir("x/refs"), write("HEAD", []byte("ref: refs/heads/main\n")), rename("x/objects", "objects"), rename("x/refs", "refs"), rename("x/config", "config")}
	}), say(":status")},
	{"shape: a kept configuration", "none", simple(func(w *world) []op {
		return []op{{Do: "keep", Path: "config", Flag: 0x42}, mkdir("objects"), mkdir("refs"), write("HEAD", []byte("ref: refs/heads/main\n")), {Do: "put", Path: "config", Text: shapeConfig(w)}}
	}), say(":status")},
	{"shape: git init around a hook", "none", simple(func(w *world) []op {
		return []op{program("x/.git/hooks/post-checkout", w), program("y/hooks/post-checkout", w), git("", "init", "-q", "x"), git("", "init", "-q", "--bare", "y"), git("", "init", "-q", "--separate-git-dir", "y", "z")}
	}), say("x:checkout -q -b new", "z:commit -q --allow-empty -m user", "z:checkout -q -b new2", "x:commit -q --allow-empty -m user", "x:checkout -q -b new2")},
	{"shape: a repository's directory renamed", "none", simple(func(w *world) []op {
		return []op{git("", "init", "-q", "x"), rename("x/.git", "y"), program("y/hooks/post-checkout", w), write("y/config", shapeConfig(w)), rename("y", "x/.git")}
	}), say("x:status", "x:checkout -q -b new")},
	{"shape: without HEAD meanwhile", "plain", simple(func(w *world) []op {
		return []op{rename(".git/HEAD", "h"), program(".git/hooks/post-checkout", w), write(".git/config", shapeConfig(w)), rename("h", ".git/HEAD")}
	}), say(":status", ":checkout -q -b new")},
	{"shape: another name without HEAD", "separate inside", simple(func(w *world) []op {
		return []op{unlink("repo.dir/HEAD"), program("repo.dir/hooks/post-checkout", w), write("repo.dir/config", shapeConfig(w)), write("repo.dir/HEAD", []byte("ref: refs/heads/main\n"))}
	}), say(":status", ":checkout -q -b new")},
	{"shape: refs renamed meanwhile", "bare layout", simple(func(w *world) []op {
		return []op{rename(".bare/refs", "r"), program(".bare/hooks/post-checkout", w), {Do: "write", Path: ".bare/config", Text: shapeConfig(w)}, rename("r", ".bare/refs")}
	}), say("trunk:status", "trunk:checkout -q -b new")},
	{"worktree entry is a link", "plain", simple(func(w *world) []op {
		return []op{mkdir(".git/worktrees"), link(".git/worktrees/w", w.victim)}
	}), say(":worktree prune", ":gc -q")},
	{"rerere copies a secret", "plain", simple(func(w *world) []op {
		return []op{write(".git/rr-cache/"+w.head+"/preimage", []byte("x\n")), write(".git/MERGE_RR", append([]byte(w.head+"\t../home/.ssh/id"), 0))}
	}), say(":rerere", ":commit -q --allow-empty -m user")},
	{"worktree's place", "plain", simple(func(w *world) []op {
		const d = ".git/worktrees/w/"
		return []op{mkdir(d), write(d+"HEAD", lines(w, "{head}")), write(d+"commondir", []byte("../..\n")), write(d+"gitdir", expand(w, "{victim}/.git\n"))}
	}), say(":worktree repair")},
}
