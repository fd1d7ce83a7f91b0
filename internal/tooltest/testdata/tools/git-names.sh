# needs: git tar
# prints: cloned: one one
# prints: switched: two
# prints: added a work tree: one
# prints: unpacked: one
# prints: removed all
# prints: the user's is held: one
export GIT_AUTHOR_NAME=Tool GIT_AUTHOR_EMAIL=tool@example.org GIT_COMMITTER_NAME=Tool GIT_COMMITTER_EMAIL=tool@example.org
git clone -q whole new
echo cloned: $(cat new/.vscode/settings.json new/app/.envrc)
(cd new && git switch -q other && test ! -e .husky/pre-commit && test -z "$(git status --porcelain)" && echo switched: $(cat .vscode/settings.json))
git -C whole worktree add -q -b mine ../tree trunk
echo added a work tree: $(cat tree/.husky/pre-commit)
mkdir unpacked && tar -C unpacked -xf whole.tar
echo unpacked: $(cat unpacked/.devcontainer/devcontainer.json)
rm -rf new tree unpacked && echo removed all
{ echo tool >whole/app/.envrc; } 2>/dev/null || true
echo "the user's is held: $(cat whole/app/.envrc)"
