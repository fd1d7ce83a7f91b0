# needs: gdb gcc
# prints: Breakpoint 1, main
# prints: $1 = 42
printf 'int x = 42;\nint main(void){return x;}\n' >g.c
gcc -g -O0 -o g g.c
gdb -batch -nx -ex 'break main' -ex run -ex 'print x' ./g
