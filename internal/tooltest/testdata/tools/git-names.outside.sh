# A repository that has names which programs obey, as many have, and an archive of it.
export GIT_AUTHOR_NAME=Person GIT_AUTHOR_EMAIL=person@example.org GIT_COMMITTER_NAME=Person GIT_COMMITTER_EMAIL=person@example.org
git init -q -b trunk whole
cd whole
mkdir -p .vscode .husky .devcontainer app/.vscode
echo one | tee .vscode/settings.json .husky/pre-commit .devcontainer/devcontainer.json .pre-commit-config.yaml rust-toolchain.toml app/.envrc >app/.vscode/tasks.json
git add -A && git commit -q -m one
git switch -q -c other
echo two >.vscode/settings.json
git rm -q .husky/pre-commit && git commit -q -a -m two
git switch -q trunk
git archive -o ../whole.tar trunk
cd ..
