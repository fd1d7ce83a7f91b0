# needs: sh
# prints: from a heredoc: 42
# prints: waited: 4
# prints: trapped
sh -eu <<'END'
cat <<INNER
from a heredoc: $((6 * 7))
INNER
(exit 4) & pid=$!
wait $pid || echo "waited: $?"
trap 'echo trapped' TERM
kill -TERM $$
END
