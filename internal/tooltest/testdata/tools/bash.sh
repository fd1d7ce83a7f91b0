# needs: bash cat sort tr
# prints: HERE AND THERE
# prints: one two three
# prints: same
# prints: status 3 of a pipe
# prints: value=7
cat <<END | tr a-z A-Z
here and there
END
printf '%s\n' two one three | sort -k1,1 | { read -r a; read -r b; read -r c; echo "$a $c $b"; }
cmp <(echo x) <(echo x) && echo same
set +e
(exit 3) | cat
echo "status $? of a pipe"
read -r value < <(echo 7)
echo "value=$value"
