# needs: redis-server redis-cli
# prints: PONG
# prints: value 42
# prints: saved
mkdir r
redis-server --port 0 --unixsocket "$PWD/r/s" --dir "$PWD/r" --daemonize no --logfile "$PWD/r/log" &
until redis-cli -s r/s ping 2>/dev/null; do kill -0 $! || { cat r/log; exit 1; }; done
redis-cli -s r/s set k 42 >/dev/null
echo "value $(redis-cli -s r/s get k)"
redis-cli -s r/s save >/dev/null && [ -s r/dump.rdb ] && echo saved
redis-cli -s r/s shutdown nosave
wait
redis-server --port 6399 --bind 127.0.0.1 --save '' --dir "$PWD/r" >/dev/null &
until redis-cli -p 6399 ping 2>/dev/null; do kill -0 $!; done
redis-cli -p 6399 shutdown nosave
