# A repository with a submodule, as a person has cloned it.
export GIT_AUTHOR_NAME=Person GIT_AUTHOR_EMAIL=person@example.org GIT_COMMITTER_NAME=Person GIT_COMMITTER_EMAIL=person@example.org
git init -q -b trunk part
(cd part && echo 1 >p && git add p && git commit -q -m part)
git init -q -b trunk whole
cd whole
git -c protocol.file.allow=always submodule --quiet add "${PWD%/*}/part" part
git commit -q -m whole
cd ..
git -c protocol.file.allow=always clone -q --recurse-submodules whole clone
