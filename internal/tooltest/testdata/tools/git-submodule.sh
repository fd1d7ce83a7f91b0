# needs: git
# prints: the part is there: 1
# prints: committed in the part
# prints: moved on in the whole
# prints: back at 1
# prints: refused to change .gitmodules
export GIT_AUTHOR_NAME=Tool GIT_AUTHOR_EMAIL=tool@example.org GIT_COMMITTER_NAME=Tool GIT_COMMITTER_EMAIL=tool@example.org
cd clone
echo "the part is there: $(cat part/p)"
cd part
echo 2 >p && git commit -q -a -m 'in the part' && git log --format='committed %s' -1
cd ..
git commit -q -a -m 'in the whole' && git log --format='moved on %s' -1
git checkout -q HEAD^
git submodule --quiet update
git submodule foreach --quiet 'echo "back at $(cat p)"'
git config -f .gitmodules submodule.part.update '!sh' 2>/dev/null || echo refused to change .gitmodules
