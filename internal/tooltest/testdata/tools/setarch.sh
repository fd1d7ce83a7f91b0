# needs: setarch grep
# prints: the same stack twice
# prints: another stack
# prints: data stays data: Operation not permitted
a=$(setarch -R grep stack /proc/self/maps) b=$(setarch -R grep stack /proc/self/maps)
[ "$a" = "$b" ] && echo the same stack twice
[ "$(grep stack /proc/self/maps)" != "$a" ] && echo another stack
{ setarch --read-implies-exec true || true; } 2>&1 | sed -n 's/.*: /data stays data: /p'
