# needs: strace
# prints: traced
strace -f -o trace.txt sh -c 'cat /dev/null'
grep -q 'exited with 0' trace.txt && echo traced
