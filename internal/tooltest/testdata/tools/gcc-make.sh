# needs: gcc make
# prints: built by make: 42
# prints: is up to date
mkdir c && cd c
printf '#include <stdio.h>\nint f(void);\nint main(void){printf("built by make: %%d\\n", f());return 0;}\n' >main.c
printf 'int f(void){return 42;}\n' >f.c
printf 'prog: main.o f.o\n\t$(CC) -o $@ $^\n%%.o: %%.c\n\t$(CC) -O2 -c -o $@ $<\n' >Makefile
make -s -j2 CC=gcc prog && ./prog
make CC=gcc prog
