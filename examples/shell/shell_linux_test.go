package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }

// ways are the two of this program.
var ways = []struct {
	name    string
	outside bool
}{{"the interpreter inside", false}, {"the interpreter outside", true}}

// inShell runs a test for each way and user, in a workspace with a file that is hidden.
func inShell(t *testing.T, body func(t *testing.T, sh *shell, workspace string)) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	kerneltest.AsEach(t, func(t *testing.T, _ kerneltest.User) {
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				dir := t.TempDir()
				write(t, filepath.Join(dir, "hidden", "file"), "leaked=SECRET\n", 0o755)
				p := sandbox.Workspace(dir)
				p.Files.Hide = append(p.Files.Hide, filepath.Join(dir, "hidden"))
				s, err := sandbox.New(p)
				if err != nil {
					t.Fatal(err)
				}
				sess, err := s.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { sess.Close() })
				sh, err := open(sess, way.outside)
				if err != nil {
					t.Fatal(err)
				}
				body(t, sh, dir)
			})
		}
	})
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), mode)); err != nil {
		t.Fatal(err)
	}
}

// printed runs a script and returns its output, that of errors after it if it is asked for, and its status.
func printed(t *testing.T, run func(ctx context.Context, f files) (int, error), errorsToo bool) (string, int) {
	t.Helper()
	var f files
	var texts [2][]byte
	var wait sync.WaitGroup
	for i, to := range []**os.File{&f.out, &f.err} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		*to = write
		wait.Go(func() { texts[i], _ = io.ReadAll(read) })
	}
	f.in, _ = os.Open(os.DevNull)
	status, err := run(t.Context(), f)
	f.in.Close()
	f.out.Close()
	f.err.Close()
	wait.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if errorsToo {
		return string(texts[0]) + string(texts[1]), status
	}
	return string(texts[0]), status
}

func (s *shell) printed(t *testing.T, script string, errorsToo bool) (string, int) {
	t.Helper()
	return printed(t, func(ctx context.Context, f files) (int, error) { return s.run(ctx, script, f) }, errorsToo)
}

// TestKernelScriptsDoAsInBash: the same output and status as of bash outside of a sandbox.
func TestKernelScriptsDoAsInBash(t *testing.T) {
	kerneltest.Need(t, kerneltest.Command("bash"))
	inShell(t, func(t *testing.T, sh *shell, workspace string) {
		begin := sh.state
		for _, script := range []string{
			"echo one > f; echo two >> f; cat < f; cat f 2>&1 | tr a-z A-Z",
			"cat nothing 2>/dev/null; echo $?",
			"ls nothing 2>err; [ -s err ] && echo said >/dev/stdout",
			"echo said >/dev/stderr; echo given >/dev/stdout",
			"touch a.c b.c .d; mkdir sub; touch sub/c.c; echo *.c */*.c .?; echo none*",
			"mkdir -p x/y; for d in x/*/; do echo $d; done; ln -s x/y l; echo l/ l/*",
			"printf '%s\\n' c a b | sort | head -n 2; false | true; echo $?; set -o pipefail; false | true; echo $?",
			"mkdir -p s/t; cd s/t; echo ${PWD##*/}; touch here; cd ..; ls t; (cd t; ls; echo ${PWD##*/}); echo ${PWD##*/}; cd -  >/dev/null; echo ${PWD##*/} ${OLDPWD##*/}; pwd -P | sed 's,.*/,,'",
			"cd nothing 2>/dev/null || echo no; touch f; cd f 2>/dev/null || echo no; cd; [ \"$PWD\" = \"$HOME\" ] && echo home",
			"cat <<E\nhere $((1 + 1))\nE\ncat <<'E'\nraw $x\nE\ncat <<<word",
			"sleep 0.01 & wait; echo done; (exit 3) & wait $!; echo $?",
			"{ echo late; } > bg & wait; cat bg",
			"false; echo $?; (exit 42); echo $?; sh -c 'exit 7'; echo $?; sh -c 'kill -9 $$'; echo $?",
			"nosuchprogram 2>/dev/null; echo $?; ./nosuch 2>/dev/null; echo $?; exit 5",
			"set -e; true; false; echo never",
			"trap 'echo bye $?' EXIT; exit 4",
			"trap - EXIT; trap '' EXIT; trap '[[ -e f ]] && echo there' EXIT; touch f",
			"echo 'v=sourced; [[ -e lib.sh ]] && echo found $1' > lib.sh; source ./lib.sh arg; echo $v; . ./lib.sh; . nothing 2>/dev/null || echo no",
			"mkdir d; echo 'echo by path' > d/lib2.sh; PATH=$PWD/d:$PATH; source lib2.sh",
			"echo 'return 3; echo never' > r.sh; source ./r.sh; echo $?",
			"touch f; chmod 600 f; mkdir d; ln -s f l; for o in -e -f -d -L -r -w -x -s; do for n in f d l no; do test $o $n; echo $o $n $?; [ $o $n ]; echo $?; done; done",
			"touch f; mkdir d; ln -s f l; [[ -e f && -f l && -L l && -d d && ! -d f && ( -r f || -x nothing ) ]] && echo all; [[ -x f ]] || echo no; [[ f -ef l ]] && echo same; [[ -n a && a == a* && -z '' ]] && echo words",
			"touch 'a b'; x='a b'; [[ -e $x ]] && echo spaced; [[ -e \"$x\" ]] && echo quoted; eval '[[ -f $x ]] && echo evaluated'",
			"f() { [[ -e $1 ]]; }; touch yes; f yes; echo $?; f no; echo $?; echo $([[ -e yes ]] && echo in)",
			"f() { echo $# $1; return 2; }; f a b; echo $?; local x 2>/dev/null; command -v f; command -v cd; type -t f cd sh if",
			"mkdir bin; printf '#!/bin/sh\\necho ran $0 | sed s,.*/,,\\n' > bin/prog; chmod +x bin/prog; PATH=$PWD/bin:$PATH; prog; command -v prog | sed 's,.*/,,'; type -t prog nothing; bin/prog; command -v nothing; echo $?",
			"export A=1 B='two words'; sh -c 'echo $A $B'; C=3 sh -c 'echo $C'; unset A; sh -c 'echo [$A]'",
			"exec > g; echo to g; exec 1>&2; [ -e g ]",
			"read a b <<< 'x y z'; echo $b; printf 'p\\nq\\n' | while read -r l; do echo \"<$l>\"; done; mapfile -t m <<< $'1\\n2'; echo ${#m[@]}",
			"x=$(<nothing); echo data > f; x=$(<f); echo $x; echo ${x:0:2} ${x^^} ${x/a/o}",
			"echo ~root ~nosuchuser; a=(1 2 3); echo ${a[@]:1}; echo {1..3}; case abc in a*) echo yes;; esac",
			"alias there='[ -e f ]'; cat /dev/null; echo x > /dev/null; head -c 3 < /dev/zero | wc -c",
			"x='\"'; x+=\"'\"; eval \"echo 'it is'\"; cd \"/tmp\"; mkdir -p \"qu'ote\"; cd \"qu'ote\"; echo \"${PWD##*/}\"; cd ..; rmdir \"qu'ote\"",
		} {
			dir := filepath.Join(workspace, "w")
			other := t.TempDir()
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			want, status := printed(t, func(ctx context.Context, f files) (int, error) {
				c := exec.CommandContext(ctx, "bash", "-c", script)
				c.Dir, c.Stdin, c.Stdout, c.Stderr = other, f.in, f.out, f.err
				c.Run()
				return c.ProcessState.ExitCode(), nil
			}, false)
			sh.state = state{dir, begin.Env}
			got, gotStatus := sh.printed(t, script, false)
			if got != want || gotStatus != status {
				t.Errorf("%s\ngot %q, status %d\nbash has %q, status %d", script, got, gotStatus, want, status)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	})
}
