# needs: git
# prints: on trunk: second
# prints: first
# prints: clean
# prints: branch side: from the worktree
# prints: merged
# prints: refused to plant a hook
git init -q -b trunk repo
cd repo
git config user.name >/dev/null || export GIT_AUTHOR_NAME=Tool GIT_AUTHOR_EMAIL=tool@example.org GIT_COMMITTER_NAME=Tool GIT_COMMITTER_EMAIL=tool@example.org
echo 1 >a && git add a && git commit -q -m first
echo 2 >>a && git commit -q -a -m second
git log --format='on trunk: %s' -1
git log --format=%s | tail -1
[ -z "$(git status --porcelain)" ] && echo clean
git worktree add -q ../side -b side
(cd ../side && echo 3 >b && git add b && git commit -q -m 'from the worktree' && git log --format='branch side: %s' -1)
git merge -q side && [ -f b ] && echo merged
git worktree remove ../side
git gc -q
git fsck --strict
echo 'echo planted' 2>/dev/null >.git/hooks/pre-commit || echo refused to plant a hook
