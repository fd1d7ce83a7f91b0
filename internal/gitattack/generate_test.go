package gitattack

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// random returns the numbers that a seed stands for.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// unchanged is a skeleton as it is.
func unchanged(w *world, k skeleton, seed uint64) *sequence {
	return &sequence{Seed: seed, Class: k.name, Fixture: k.fixture, Rounds: []round{{Ops: k.ops(w, random(seed)), User: slices.Clone(k.user)}}}
}

// userLines are the commands that a user gives after a tool's run, wherever he stands.
var userLines = strings.Split(strings.ReplaceAll(`status|status --porcelain=2 --branch|add -A|commit -q -m user|commit -q --allow-empty -m user|commit -q -a --amend -m user|checkout -q -f|checkout .|restore .|reset -q --hard
stash|stash pop|fetch -q|fetch -q --all|pull -q|push -q|push -q origin HEAD:refs/heads/z|push -q evil HEAD:refs/heads/y|log -p -2|show --stat|diff|diff HEAD|diff --cached|blame a|gc -q|gc -q --auto|fsck|prune
rebase --continue|rebase --skip|rebase --abort|rebase -q topic|am --continue|am --skip|am --abort|cherry-pick --continue|cherry-pick --abort|cherry-pick topic|revert --continue|revert --no-edit HEAD|merge -q topic|merge --continue|merge --abort
bisect good|bisect reset|submodule status|submodule --quiet update --init --recursive|submodule foreach git status|worktree list|worktree prune|worktree repair|worktree remove -f wt|branch -a|branch new|branch -d topic|checkout -q topic
checkout -q -b new2|switch -q -|tag v1|describe --all|grep one|ls-files -s|rerere|remote update|remote show origin|reflog|notes add -f -m x|pack-refs --all|repack -adq|clean -fdq|rm -rq --cached d|mv a a2|archive HEAD|bundle create b HEAD|shortlog HEAD`,
	"\n", "|"), "|")

var opNames = strings.Fields(`write write write write write replace replace rename rename link symlink symlink unlink rmall mkdir rmdir keep put map truncate chmod mkfifo bind copy exchange git git`)

var gitLines = strings.Split(`init -q x|init -q --bare x|init -q --separate-git-dir repo.dir s|clone -q . x|clone -q --bare . .bare|worktree add -q w|worktree add -q x/w|submodule --quiet add ./x s|add -A|commit -q -m tool --allow-empty|checkout -q -b t
rebase -q -i HEAD~1|config user.name x;touch|remote add evil ../evil|remote remove origin|remote set-url origin {ws}/evil|config core.fsmonitor %s|config core.worktree ../s|config remote.origin.url /proc/self/root{ws}/evil|update-index --add --cacheinfo 160000,{head},s
update-index --add --cacheinfo 160000,{head},x|hash-object -w evil/program|push -q {ws}/evil HEAD:refs/heads/main|pack-refs --all|update-ref refs/heads/x {topic}|stash|bisect start|merge -q topic|cherry-pick topic|worktree remove -f wt|submodule --quiet update --init|gc -q|update-index --split-index|config extensions.worktreeConfig true|branch -q -M hooks`, "|")

var spellings = []string{"", "", "", "", "absolute", "root", "cwd", "thread", "dots", "slashes", "descriptor", "link"}

// A generator draws sequences.
type generator struct {
	*world
	*rand.Rand
	dirs []string // where the user works
}

// op draws one operation.
func (g *generator) op() op {
	o := op{Do: pick(g.Rand, opNames), Path: gitName(g.Rand), Via: pick(g.Rand, spellings)}
	switch o.Do {
	case "write", "replace", "put", "map":
		o.Text = payload(g.world, g.Rand, o.Path)
		if g.IntN(3) == 0 || strings.Contains(o.Path, "hooks/") || strings.HasSuffix(o.Path, "evil") {
			o.Mode = 0o755
		}
		o.Flag = pick(g.Rand, []int{0, 0, 0, 0x441, 0x1, 0x2, 0xc1, 0x401}) // create, append, in place, exclusive
	case "keep":
		o.Flag = pick(g.Rand, []int{0x41, 0x42, 0x442, 0x2})
	case "rename", "link", "copy", "exchange":
		o.To = gitName(g.Rand)
		if o.Do == "exchange" {
			o.Do, o.Flag = "rename", 2
		} else if o.Do == "rename" {
			o.Flag = pick(g.Rand, []int{0, 0, 0, 1})
		}
		if g.IntN(2) == 0 {
			o.Path = pick(g.Rand, workNames)
		}
	case "symlink":
		o.To = pick(g.Rand, outsideTexts(g.world))
	case "chmod":
		o.Mode = pick(g.Rand, []uint32{0o755, 0o644, 0o777, 0o000, 0o600})
	case "git":
		o.Path, o.Via = "", ""
		if g.IntN(3) == 0 {
			o.Path = pick(g.Rand, g.dirs)
		}
		for _, word := range strings.Fields(strings.ReplaceAll(pick(g.Rand, gitLines), "%s", "CMD")) {
			o.Args = append(o.Args, strings.ReplaceAll(string(expand(g.world, word)), "CMD", g.shout()))
		}
	}
	return o
}

// user draws commands, and puts those of the skeleton, if any, among them.
func (g *generator) user(n int, ops []op) []command {
	dirs := append(slices.Clone(g.dirs), g.dirs...)
	for _, o := range ops { // where the tool was at work
		for _, p := range []string{o.Path, o.To} {
			if d := path.Dir(strings.TrimSuffix(p, "/")); p != "" && p[0] != '/' && !strings.Contains(d, ".git") {
				dirs = append(dirs, d)
			}
		}
	}
	var list []command
	for range n {
		list = append(list, command{pick(g.Rand, dirs), strings.Fields(pick(g.Rand, userLines))})
	}
	return list
}

// draw makes the sequence of a seed. at returns the world with a fixture.
func draw(seed uint64, at func(fixture string) (*world, []string)) *sequence {
	r := random(seed)
	if r.IntN(2) == 0 {
		k := pick(r, skeletons)
		fixture := k.fixture
		if r.IntN(8) == 0 {
			fixture = pick(r, fixtureNames)
		}
		w, dirs := at(fixture)
		g := &generator{w, r, dirs}
		s := &sequence{Seed: seed, Class: k.name, Fixture: fixture, Rounds: []round{{Ops: k.ops(w, r), User: slices.Clone(k.user)}}}
		for range 1 + r.IntN(4) {
			g.mutate(s)
		}
		s.Rounds[0].User = append(s.Rounds[0].User, g.user(r.IntN(3), s.Rounds[0].Ops)...)
		return s
	}
	fixture := pick(r, fixtureNames)
	w, dirs := at(fixture)
	g := &generator{w, r, dirs}
	s := &sequence{Seed: seed, Class: "random", Fixture: fixture}
	for range 1 + r.IntN(2) {
		var ops []op
		for range 3 + r.IntN(10) {
			ops = append(ops, g.some()...)
		}
		s.Rounds = append(s.Rounds, round{ops, g.user(2+r.IntN(4), ops)})
	}
	return s
}

// some draws an operation, a repository somewhere, or the state of a rebase.
func (g *generator) some() []op {
	dir := pick(g.Rand, []string{"evil", "x", "src", "s", "evil/sub", "", ".git/modules/m", "lib", "repo.git"})
	tree := g.ws + "/" + pick(g.Rand, []string{"", "s", "x", "lib", "src"})
	switch g.IntN(24) {
	case 0:
		return repository(g.world, dir, strings.TrimSuffix(tree, "/"))
	case 1:
		return bare(g.world, or2(dir, "evil"))
	case 2:
		return rebasing(g.world, pick(g.Rand, []string{"exec %s", "pick {topic} t", "x %s", "merge -C {topic} topic # x"}))
	case 3:
		return mailing(g.world, pick(g.Rand, []string{"", " '--build-fake-ancestor={victim}/new'", " '-p1' '--directory=../victim'"}))
	case 4:
		return []op{program("evil/program", g.world), git("", "hash-object", "-w", "evil/program"), {Do: "replace", Path: ".git/index", Text: forgedIndex(g.world, g.Rand)}}
	}
	return []op{g.op()}
}

func or2(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
