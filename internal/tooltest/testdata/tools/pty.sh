# needs: script python3 stty
# prints: on a terminal /dev/pts/
# prints: 24 rows
# prints: python has a terminal
# prints: interrupted
script -qec 'echo "on a terminal $(tty)"; stty rows 24; echo "$(stty size | cut -d" " -f1) rows"' /dev/null </dev/null
# noflsh: the terminal drops what is on its way out when it is typed Ctrl-C, and that could be the answer to it.
python3 - <<'END'
import os, pty, sys
def run(argv, type=b''):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    out = b''
    while True:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data: break
        out += data
        if type and b'ready' in out:
            os.write(fd, type); type = b''
    os.waitpid(pid, 0)
    return out.decode()
print(run(['sh', '-c', 'test -t 0 && echo python has a terminal']), end='')
print(run(['bash', '-c', 'stty noflsh; trap "echo interrupted; exit" INT; echo ready; while :; do read -r x || :; done'], b'\x03'), end='')
END
