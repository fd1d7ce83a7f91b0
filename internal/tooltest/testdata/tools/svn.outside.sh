# A working copy as a person has it, with a change that is not committed.
svnadmin create repository
svn checkout -q "file://$PWD/repository" w
cd w
echo 1 >a
svn add -q a
svn commit -q -m one
svn update -q
echo 2 >>a
