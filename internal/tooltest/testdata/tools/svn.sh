# needs: svn svnadmin
# prints: M       a
# prints: +2
# prints: one
# prints: not committed: svn: E155004
# prints: not relocated: svn:
cd w
svn status
svn diff
svn log
echo "not committed: $(svn commit -m two 2>&1 | grep E155004 | head -1)"
cp -r ../repository evil
echo "not relocated: $(svn relocate "file://$PWD/evil" 2>&1 | head -1)"
