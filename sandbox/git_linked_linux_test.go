package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A workspace that is a linked worktree or a submodule's work tree: git works there, and what its repository holds for others, and what
// git obeys in it, stays as it is.
func TestKernelGitWorksInALinkedWorktree(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const linked = `git -C main worktree add -q -b side ../ws 2>/dev/null; git -C main worktree add -q -b other ../other; git -C main remote add origin ../remote.git`
	const use = `git status --porcelain | wc -l | grep -qx 0; echo x >> a; git commit -qam tool; git branch topic; git branch -d topic; git fetch -q origin; git log --oneline | wc -l | grep -qx 3
		git checkout -q -b more; echo y >> a; git stash -q; git stash pop -q; git commit -qam more; git tag v1; git config user.name Tool; git rebase -q side; git checkout -q side; git merge -q more; git pack-refs --all; git gc -q
		git worktree add -q inner; echo z > inner/z; git -C inner add z; git -C inner commit -qm inner; git worktree remove inner`
	const unchanged = `test "$(cat main/.git/index main/.git/HEAD other/.git main/.git/worktrees/other/[A-Zcgi]* | cksum)" = "$(cat before)"; git -C main status --porcelain | wc -l | grep -qx 0; git -C other status --porcelain | wc -l | grep -qx 0; git -C main log --oneline side | wc -l | grep -qx 4; git -C main fsck`
	eachGitCase(t, []gitCase{
		{name: "a linked worktree", dir: "ws", make: linked, change: showRemote, script: use, after: `git -C main log --oneline side | wc -l | grep -qx 4; git -C main fsck; git -C other status --porcelain | wc -l | grep -qx 0`},
		{name: "the repository stays held", dir: "ws", make: linked + `
			cat main/.git/index main/.git/HEAD other/.git main/.git/worktrees/other/[A-Zcgi]* | cksum > before`, change: showRemote,
			script: use, after: unchanged, fails: strings.ReplaceAll(`
				echo x > C/hooks/post-checkout
				mkdir -p C/hooks && cp /bin/true C/hooks/pre-commit
				mv C/hooks C/old
				echo x > C/config
				git config core.fsmonitor /tmp/x
				git config core.hooksPath /tmp/x
				git config include.path /tmp/x
				git config remote.origin.uploadpack x
				echo /tmp > C/objects/info/alternates
				echo x > C/info/attributes
				echo x > C/index
				cp a C/index.lock
				cp C/worktrees/ws/index n; mv n C/index
				echo x > C/HEAD
				git symbolic-ref HEAD refs/heads/main; git --git-dir=C symbolic-ref HEAD refs/heads/side
				echo x > C/config.worktree
				mkdir C/rebase-merge
				echo x > C/MERGE_HEAD
				echo x > C/worktrees/other/gitdir
				echo x > C/worktrees/other/index
				echo x > C/worktrees/other/HEAD
				mkdir C/worktrees/other/modules
				rm -rf C/worktrees/other
				mv C/worktrees/other C/worktrees/o
				mv C/worktrees C/w
				git worktree prune; test ! -e C/worktrees/other
				git worktree remove -f other
				echo ../.. > C/worktrees/ws/commondir; echo /tmp > C/worktrees/ws/commondir; grep tmp C/worktrees/ws/commondir
				echo "$BASE/other/.git" > C/worktrees/ws/gitdir; ls /dev/null >/dev/null; grep other C/worktrees/ws/gitdir
				echo "gitdir: $BASE/remote.git" > .git; ls; grep remote .git
				rm .git; echo "gitdir: $BASE/home" > .git; ls >/dev/null; grep home .git
				ln -s C/config c && echo x >> c
				ln C/config c
				cat $BASE/main/a`, " C/", " $BASE/main/.git/")},
		{name: "a bare repository's worktree", dir: "p/ws", make: `mkdir p; git clone -q --bare main p/.bare; git -C p/.bare worktree add -q -b side ../ws`, script: `echo x >> a; git commit -qam tool; git branch b; git status; git log`,
			fails: "echo x > $BASE/p/.bare/hooks/post-checkout\necho x >> $BASE/p/.bare/config", after: `git -C p/.bare log --oneline side | wc -l | grep -qx 3`},
		{name: "reached by a link", dir: "ws", make: `ln -s main link; git -C main worktree add -q -b side ../ws; echo "gitdir: $PWD/link/.git/worktrees/ws" > ws/.git`, script: `echo x >> a; git commit -qam tool`, after: `git -C main log --oneline side | wc -l | grep -qx 3`},
		{name: "a submodule", dir: "super/lib", make: `git init -q super; cd super; git submodule --quiet add ../main lib; git commit -qm lib; echo keep > ../x; cat .git/index .git/config | cksum > ../before`,
			script: `git status --porcelain | wc -l | grep -qx 0; echo x >> a; git commit -qam tool; git checkout -q -b b; git branch`,
			fails: `echo x > ../.git/modules/lib/hooks/post-checkout
				git config core.worktree /tmp
				git config core.fsmonitor x
				cat ../.git/HEAD
				cat ../.gitmodules`, after: `cd super; test "$(cat .git/index .git/config | cksum)" = "$(cat ../before)"; git -C lib log --oneline | wc -l | grep -qx 3`},
	})
}

// showRemote lets the tool read the remote.
func showRemote(p *Policy) {
	dir := p.Files.Write[0]
	p.Files.Read = append(p.Files.Read, dir[:strings.LastIndex(dir, "/")]+"/remote.git")
}

// F7: a directory on the way to the work tree that core.worktree names becomes a link, and the user's git writes where it leads.
func TestKernelAWorkTreeStaysInItsPlace(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const sub = `mkdir victim; git init -q super; cd super; git submodule --quiet add ../main deep/lib; git commit -qm lib; mkdir x; cp deep/lib/.git x/.git; sed -i 's|../../.git|../.git|' x/.git; git -C x status --porcelain >/dev/null; cd ..; touch victim/seen`
	const after = `cd super; test ! -L deep -a ! -L deep/lib; test "$(ls ../victim)" = seen; git -C x checkout -q -f || true; test "$(ls ../victim)" = seen`
	eachGitCase(t, []gitCase{
		{name: "links in the way", dir: "super", make: sub, after: after, fails: `
			rm -rf deep/lib; ln -s $BASE/victim deep/lib
			rm -rf deep; ln -s $BASE/victim deep
			mv deep/lib old
			mv deep old
			ln -s $BASE/victim l; rm -rf deep/lib; mv -T l deep/lib
			rm -rf deep; ln -s . l2; mv -T l2 deep
			mkdir -p n/lib; rm -rf deep; mv n deep
			ln -s $BASE/victim l3; python3 -c 'import os,ctypes; r=ctypes.CDLL(None).renameat2(-100,b"l3",-100,b"deep",2); exit(r!=0)'
			git config -f .git/modules/deep/lib/config core.worktree ../../../../x`},
		{name: "submodules are used and removed", dir: "super", make: `git init -q super; cd super; git submodule --quiet add ../main deep/lib; git commit -qm lib`,
			script: `echo x >> deep/lib/a; git -C deep/lib commit -qam tool; git checkout -q -b b; git submodule --quiet deinit -f deep/lib; git rm -qf deep/lib || true; rm -rf deep; mkdir -p deep/lib; echo x > deep/y; rm -r deep; mkdir other; mv other o2; ln -s o2 o3`},
	})
}

// What is not proven is not granted, and the policy says why.
func TestKernelForgedWorktreesAreNotGranted(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	none := func(p *Policy) {}
	cases := []struct {
		name, make string
		change     func(p *Policy)
		why        string // a part of the note; "": there is none
		path       string // must not be shown
	}{
		{"a home that is a repository, with the workspace in a sub-directory", `mv main/.git home/; rmdir ws; mkdir home/ws; ln -s home/ws ws; echo x > home/x`, none, "it is the home directory", "home/x"},
		{"a directory that holds the home", `mv main/.git .`, none, "it contains", "main/a"},
		{"a .git file above that names another repository", `echo "gitdir: $PWD/main/.git" > .git`, none, "does not name it in return", "main/.git/HEAD"},
		{"a link called .git above", `ln -s main/.git .git`, none, "neither a directory nor a file", "main/.git/HEAD"},
		{"an empty .git above", `mkdir .git; echo x > x`, none, "shape", "x"},
		{"a sub-directory, switched off", `mv main/.git home; mkdir ws/in; mv home/.git .`, func(p *Policy) { p.Files.Worktrees = nil }, "", ".git/HEAD"},
		{"a sub-directory of a tree with hidden names", `rmdir ws; mkdir main/ws; ln -s main/ws ws`, func(p *Policy) { p.Files.HideNames = []string{".env"} }, "Files.HideNames", "main/a"},
		{"a sub-directory of a hidden tree", `rmdir ws; mkdir main/ws; ln -s main/ws ws`, func(p *Policy) { p.Files.Hide = append(p.Files.Hide, strings.TrimSuffix(p.Files.Write[0], "/ws")) }, "hidden", "main/a"},
		{"a directory in a bare repository", `rmdir ws; mkdir remote.git/ws; ln -s remote.git/ws ws`, none, "", "remote.git/HEAD"},
		{"a home directory", `echo "gitdir: $PWD/home" > ws/.git; echo x > home/x`, none, "does not name it in return", "home/x"},
		{"a secret", `mkdir home/.ssh; echo k > home/.ssh/id; echo "gitdir: $PWD/home/.ssh" > ws/.git`, none, "does not name it in return", "home/.ssh/id"},
		{"another repository", `echo "gitdir: $PWD/main/.git" > ws/.git`, none, "does not name it in return", "main/.git/HEAD"},
		{"another repository's worktree", `git -C main worktree add -q ../other; cp other/.git ws/.git`, none, "does not name it in return", "main/.git/HEAD"},
		{"a worktree's directory in the workspace, which names a secret as its commondir", `mkdir -p ws/g home/.ssh; echo k > home/.ssh/id; echo x > ws/g/HEAD; echo "$PWD/home/.ssh" > ws/g/commondir; echo "$PWD/ws/.git" > ws/g/gitdir; echo "gitdir: g" > ws/.git`, none, "commondir", "home/.ssh/id"},
		{"worktrees without a repository around them", `mkdir -p m/worktrees/ws; cd m/worktrees/ws; echo x > HEAD; echo ../.. > commondir; echo ../../../ws/.git > gitdir; cd ../../..; echo "gitdir: $PWD/m/worktrees/ws" > ws/.git; echo x > m/HEAD`, none, "shape", "m/HEAD"},
		{"a link for a .git file", `git -C main worktree add -q ../other; mv other/.git home/g; ln -s ../home/g ws/.git`, none, "", "main/.git/HEAD"},
		{"a repository around the workspace", `rmdir ws; git clone -q --bare main r; git -C r worktree add -q $PWD/r/ws; ln -s r/ws ws`, none, "lies around it", "r/HEAD"},
		{"switched off", `git -C main worktree add -q ../ws`, func(p *Policy) { p.Files.Worktrees = nil }, "", "main/.git/HEAD"},
		{"names are not protected", `git -C main worktree add -q ../ws`, func(p *Policy) { p.Files.Protect.Off = true }, "not protected", "main/.git/HEAD"},
		{"git is not protected", `git -C main worktree add -q ../ws`, func(p *Policy) { p.Files.Protect.Except = []string{".git"} }, "not protected", "main/.git/HEAD"},
		{"hidden", `git -C main worktree add -q ../ws`, func(p *Policy) {
			p.Files.Hide = append(p.Files.Hide, strings.TrimSuffix(p.Files.Write[0], "ws")+"main")
		}, "hidden", "main/.git/HEAD"},
		{"a worktree that has moved", `git -C main worktree add -q ../other; rmdir ws; mv other ws`, none, "does not name it in return", "main/.git/HEAD"},
	}
	eachWall(t, gitSets[:1], func(t *testing.T, w walls) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				base := realTemp(t)
				t.Setenv("HOME", base+"/home")
				asUser(t, base, gitMake+c.make)
				p := Workspace(base + "/ws")
				if _, link, ok := strings.Cut(c.make, "; ln -s "); ok && strings.HasSuffix(strings.Fields(link)[0], "/ws") {
					p = Workspace(base + "/" + strings.Fields(link)[0])
				}
				c.change(&p)
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				cmd := s.Command("test", "-e", base+"/"+c.path)
				cmd.Dir = "/"
				if err := cmd.Run(); err == nil {
					t.Errorf("%s is shown", c.path)
				}
				notes := cmd.Report().Notes
				told := slices.ContainsFunc(notes, func(n policy.Note) bool {
					return n.Class == "not granted" && strings.Contains(n.Why, c.why) && strings.Contains(s.Explain(), n.Why)
				})
				if told != (c.why != "") {
					t.Errorf("the report's notes: %+v", notes)
				}
			})
		}
	})
}
