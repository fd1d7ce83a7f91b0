package sandbox

import (
	"io"
	"strings"
	"testing"
)

// TestKernelAttackTheListOfProcesses: a process decides how long its command line is, by prctl(2) without memory for it, and what it forks shows the same.
func TestKernelAttackTheListOfProcesses(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		for name, words := range map[string][]string{"one word": {strings.Repeat("w", 100_000)}, "empty words": make([]string, 100_000)} {
			c := s.sh("echo; read x || exit 0")
			c.Args = append(append(c.Args, "sh"), words...)
			in, _ := c.StdinPipe()
			out, _ := c.StdoutPipe()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			io.ReadFull(out, make([]byte, 1)) // it is executed
			list, err := s.Processes()
			size := 0
			for _, p := range list {
				size += len(strings.Join(p.Args, " "))
				if len(p.Args) == 0 || len(p.Args) > 256 || p.Args[0] != "/bin/sh" {
					t.Errorf("%s: %d words, the first %.20q", name, len(p.Args), p.Args)
				}
			}
			if err != nil || len(list) != 1 || size > 4<<10 {
				t.Errorf("%s: %d processes, %d bytes, %v", name, len(list), size, err)
			}
			in.Close()
			if err := c.Wait(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
