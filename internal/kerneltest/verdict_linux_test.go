package kerneltest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestVerdict(t *testing.T) {
	died := errors.New("signal: killed")
	for name, c := range map[string]struct {
		record string
		exit   error
		want   outcome
	}{
		"a body that passed is ok":                          {began + passed, nil, ok},
		"a body that skipped is a skip":                     {began + skipped, nil, skip},
		"a body that failed is bad":                         {began + failed, errors.New("exit status 1"), bad},
		"a failure with status 0 is bad":                    {began + failed, nil, bad},
		"no record at all is bad":                           {"", nil, bad},
		"no record and a death is bad":                      {"", died, bad},
		"status 0 before the end is bad":                    {began, nil, bad},
		"a death before the end is bad":                     {began, died, bad},
		"a death after the end is bad":                      {began + passed, died, bad},
		"an end without a beginning is bad":                 {passed, nil, bad},
		"a second ending is bad":                            {began + passed + passed, nil, bad},
		"half a record is bad":                              {began + "pass", nil, bad},
		"a skip after which the process is killed is bad":   {began + skipped, died, bad},
		"a record that another program wrote over is wrong": {"hello\n" + began + passed, nil, bad},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := verdict(c.record, c.exit)
			if got != c.want {
				t.Errorf("verdict %d (%s), want %d", got, why, c.want)
			}
			if got == bad && why == "" {
				t.Error("bad for no reason")
			}
		})
	}
}

// judged runs a body as InChild does and returns the verdict instead of obeying it.
func judged(t *testing.T, c Child, body func(t *testing.T)) (outcome, string) {
	t.Helper()
	call := nextCall(t)
	if inside != nil {
		inside.run(t, call, body)
		return ok, ""
	}
	result, text, err := start(t, c, call)
	if err != nil {
		t.Fatal(err)
	}
	return result, text
}

func TestKernelChildIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		body func(t *testing.T)
		want outcome
		says string
	}{
		"a body that returns passes":     {func(*testing.T) {}, ok, ""},
		"what a body logs is relayed":    {func(t *testing.T) { t.Log("a word") }, ok, "a word"},
		"an error fails":                 {func(t *testing.T) { t.Error("an error") }, bad, "an error"},
		"a fatal error fails":            {func(t *testing.T) { t.Fatal("a fatal error") }, bad, "a fatal error"},
		"a subtest's error fails":        {func(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("inner") }) }, bad, "inner"},
		"a parallel subtest's one too":   {parallelFailure, bad, "late"},
		"a panic fails":                  {func(*testing.T) { panic("oh no") }, bad, "oh no"},
		"a nil dereference fails":        {func(*testing.T) { var p *int; *p = 1 }, bad, "nil pointer"},
		"a skip is a skip":               {func(t *testing.T) { t.Skip("no moon") }, skip, "no moon"},
		"os.Exit(0) fails":               {func(*testing.T) { os.Exit(0) }, bad, "exit status"},
		"a raw exit with 0 fails":        {func(*testing.T) { unix.Exit(0) }, bad, "before the end"},
		"a raw exit with 3 fails":        {func(*testing.T) { unix.Exit(3) }, bad, "exit status 3"},
		"SIGKILL fails":                  {func(*testing.T) { killSelf(unix.SIGKILL) }, bad, "signal: killed"},
		"a body in a body fails":         {func(t *testing.T) { InChild(t, Child{}, func(*testing.T) {}) }, bad, "in the body"},
		"execve of a true program fails": {execTrue, bad, "before the end"},
		"a fact that is missing skips":   {func(t *testing.T) { Need(t, Command("no-such-program")) }, skip, "no-such-program"},
	} {
		t.Run(name, func(t *testing.T) {
			AsEach(t, func(t *testing.T, as User) {
				env := []string{"CI="}
				got, text := judged(t, Child{As: as, Env: env}, c.body)
				if got != c.want || !strings.Contains(text, c.says) {
					t.Errorf("verdict %d, want %d; output without %q:\n%s", got, c.want, c.says, text)
				}
			})
		})
	}
}

func parallelFailure(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		t.Parallel()
		t.Error("late")
	})
}

func killSelf(sig syscall.Signal) {
	_ = unix.Kill(os.Getpid(), sig)
	select {}
}

func execTrue(t *testing.T) {
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(syscall.Exec(path, []string{"true"}, nil))
}

func TestKernelChildThatHangsIsKilled(t *testing.T) {
	Long(t)
	got, text := judged(t, Child{Timeout: time.Second}, func(*testing.T) { select {} })
	if got != bad || !strings.Contains(text, "test timed out") {
		t.Errorf("verdict %d: %s", got, text)
	}
}

func TestKernelProcessLeftBehindIsFoundAndKilled(t *testing.T) {
	Need(t, HasUserNamespaces)
	Need(t, Command("sleep"))
	defer func(was time.Duration) { grace = was }(grace)
	grace = 0 // this sleep does not end
	for name, attr := range map[string]*syscall.SysProcAttr{
		"in the child's session": nil,
		"in its own session":     {Setsid: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := judged(t, Child{As: Ordinary}, func(t *testing.T) {
				cmd := exec.Command("sleep", "3600")
				cmd.SysProcAttr = attr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Logf("pid=%d.", cmd.Process.Pid)
			})
			if got != bad || !strings.Contains(text, "left behind: sleep") {
				t.Fatalf("verdict %d: %s", got, text)
			}
			_, rest, _ := strings.Cut(text, "pid=")
			number, _, _ := strings.Cut(rest, ".")
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range find(pid, "none") {
				t.Errorf("%s (%d) lives", p.name, p.pid)
			}
		})
	}
}

func TestRelay(t *testing.T) {
	const output = "=== RUN   TestA\n=== RUN   TestA/b\n    a_test.go:1: word\n--- SKIP: TestA (0.00s)\n" +
		"    --- SKIP: TestA/b (0.00s)\n        --- SKIP: TestA/b/c (0.00s)\n--- SKIP: TestAB (0.00s)\nPASS\n"
	const want = "    a_test.go:1: word\n        --- SKIP: TestA/b/c (0.00s)\n--- SKIP: TestAB (0.00s)"
	if got := relay(output, "TestA/b"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseStat(t *testing.T) {
	for line, want := range map[string]struct {
		name, state string
		session     int
	}{
		"7 (sleep) S 1 6 5 0 -1":        {"sleep", "S", 5},
		"7 (a) R 9 (b) Z 1 6 5 0 -1":    {"a) R 9 (b", "Z", 5},
		"7 (short) S 1":                 {"", "X", 0},
		"":                              {"", "X", 0},
		") (":                           {"", "X", 0},
		"7 (sleep) S 1 6 many-digits 0": {"", "X", 0},
	} {
		name, state, session := parseStat(line)
		if name != want.name || state != want.state || session != want.session {
			t.Errorf("%q: %q %q %d", line, name, state, session)
		}
	}
}
