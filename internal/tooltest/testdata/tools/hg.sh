# needs: hg
# prints: M a
# prints: +2
# prints: one
# prints: not committed: abort: could not lock working directory
# prints: no repository made: abort:
# prints: no journal
export HGRCPATH= HGUSER=tool
cd w
hg status
hg diff
hg log -T '{desc}\n'
echo "not committed: $(hg commit -m two 2>&1)"
echo "no repository made: $(hg init app 2>&1)"
echo >.hg/store/journal 2>/dev/null || echo no journal
