# needs: bash sleep
# prints: stopped
# prints: in the background again
# prints: job 5
# prints: foreground 6
# Job control as an interactive shell has it.
set -m
set +e
sh -c 'kill -STOP $$; exit 5' &
pid=$!
until jobs %1 | grep -q Stopped; do :; done
echo stopped
bg %1 >/dev/null && echo in the background again
wait $pid # which bash remembers when the job is long over
echo "job $?"
sh -c 'kill -STOP $$; exit 6' &
until jobs %% | grep -q Stopped; do :; done
fg %% >/dev/null
echo "foreground $?"
