# needs: tar rsync find xargs rg
# prints: unpacked: deep
# prints: link: deep.txt
# prints: synced: deep
# prints: 12 files
# prints: found in a/b/c/deep.txt
# prints: mode 640
mkdir -p a/b/c && echo deep >a/b/c/deep.txt && ln -s deep.txt a/b/c/link && chmod 640 a/b/c/deep.txt
for i in 1 2 3 4 5 6 7 8 9 10 11; do echo "$i" >"a/f$i"; done
tar czf a.tgz a && mkdir un && tar xzf a.tgz -C un
echo "unpacked: $(cat un/a/b/c/deep.txt)"
echo "link: $(readlink un/a/b/c/link)"
rsync -a --delete a/ copy/
echo "synced: $(cat copy/b/c/deep.txt)"
echo "$(find a -type f -print0 | xargs -0 -n 2 -P 4 ls | wc -l) files"
echo "found in $(rg -l '^deep$' a)"
echo "mode $(stat -c %a un/a/b/c/deep.txt)"
