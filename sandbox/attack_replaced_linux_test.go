package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// replace puts a new file in the place of p by rename, as editors, passwd(1) and token refreshers do.
func replace(t *testing.T, p, text string) {
	t.Helper()
	if err := os.WriteFile(p+".new", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p+".new", p); err != nil {
		t.Fatal(err)
	}
}

// TestKernelWhatTheHostReplacesStaysHeld: what is hidden, or read-only in a writable directory, stays so when the host
// replaces it by rename while the tool runs: the kernel takes away a mount upon it then.
func TestKernelWhatTheHostReplacesStaysHeld(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const script = `echo ready; read -r line
		cat $READ/secret && echo HIDDEN-READ; cat $READ/d/secret && echo DEEP-READ; cat $WS/secret && echo HIDDEN-WRITE; cat $WS/hidden/file && echo HIDDEN-DIR
		cat $WS/./hidden/../secret && echo DOTS; ln -s $WS/secret l; cat l && echo LINK; ln $WS/secret h && echo HARD; mv $WS/secret m && echo MOVED; cp -r $WS/hidden c && cat c/file && echo COPIED
		exec 7</proc/self/cwd/secret && echo PROC; cat $WS/SECRET $WS/sec*
		(echo x >>$WS/policy) && echo APPENDED; (echo x >$WS/policy) && echo WRITTEN; chmod 777 $WS/policy && echo CHMOD; rm -f $WS/policy && echo REMOVED; mv m2 $WS/policy && echo OVER; mv $WS/policy p && echo TAKEN; (echo x >$WS/held/new) && echo MADE
		cat $READ/open $READ/d/open $WS/policy $WS/held/file && echo readable; mkdir -p a/b && echo x >a/b/f && mv a z && rm -r z && echo y >f.tmp && mv f.tmp plain && cp plain plain~ && cat $WS/held/sub/own >/dev/null && (echo z >>$WS/held/sub/own) && echo writable
		(echo new >$READ/made); cat $READ/fresh; echo end`
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		for _, without := range [][]kerneltest.Feature{nil, {kerneltest.Landlock}, {kerneltest.Namespaces}} {
			t.Run(fmt.Sprint("without ", without), func(t *testing.T) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
					home := os.Getenv("HOME")
					ws, read := filepath.Join(home, "ws"), filepath.Join(home, "read")
					for _, p := range []string{"ws/hidden/", "ws/held/sub/", "read/d/"} {
						os.MkdirAll(filepath.Join(home, p), 0o755)
					}
					for _, p := range []string{"ws/secret", "ws/policy", "ws/hidden/file", "ws/held/file", "ws/held/sub/own", "ws/plain", "ws/m2", "read/secret", "read/d/secret", "read/open", "read/d/open"} {
						if err := os.WriteFile(filepath.Join(home, p), []byte("old "+p+"\n"), 0o666); err != nil {
							t.Fatal(err)
						}
					}
					p := Workspace(ws)
					p.May = []Bound{policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses}
					p.Files.Protect.Off = true // it needs no names to be protected
					p.Files.Read = append(p.Files.Read, read, ws+"/policy", ws+"/held")
					p.Files.Write = append(p.Files.Write, ws+"/held/sub")
					p.Files.Hide = append(p.Files.Hide, read+"/secret", read+"/d/secret", ws+"/secret", ws+"/hidden")
					p.Env.Set = map[string]string{"WS": ws, "READ": read}
					s, err := New(p)
					if err != nil {
						t.Fatal(err)
					}
					if s.ready.Plan.Namespaces.Mount {
						read = "" // there is one mechanism for what lies in what can only be read
					}
					c := s.Command("/bin/bash", "-c", script)
					c.Dir = ws
					stdin, err := c.StdinPipe()
					if err != nil {
						t.Fatal(err)
					}
					stdout, err := c.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					c.Stderr = c.Stdout
					if err := c.Start(); err != nil {
						t.Fatal(err)
					}
					lines := bufio.NewReader(stdout)
					if line, err := lines.ReadString('\n'); line != "ready\n" {
						t.Fatalf("%q, %v", line, err)
					}
					for _, p := range []string{"ws/secret", "ws/policy", "read/secret", "read/d/secret"} {
						if read == "" && strings.HasPrefix(p, "read") {
							continue
						}
						replace(t, filepath.Join(home, p), "NEW "+p+"\n")
					}
					os.Rename(filepath.Join(ws, "hidden"), filepath.Join(home, "gone"))
					os.Mkdir(filepath.Join(ws, "hidden"), 0o777)
					os.WriteFile(filepath.Join(ws, "hidden/file"), []byte("NEW hidden/file\n"), 0o666)
					io.WriteString(stdin, "go\n")
					out, _ := io.ReadAll(lines)
					if err := c.Wait(); err != nil {
						t.Errorf("%v", err)
					}
					text := string(out)
					for _, bad := range []string{"HIDDEN", "READ", "DOTS", "LINK", "HARD", "MOVED", "COPIED", "PROC", "APPENDED", "WRITTEN", "CHMOD", "REMOVED", "OVER", "TAKEN", "MADE", "secret\n", "hidden/file\n"} {
						if strings.Contains(text, bad) {
							t.Errorf("%s:\n%s\n%s", bad, text, c.Report())
						}
					}
					for _, good := range []string{"old read/open", "old read/d/open", "NEW ws/policy", "old ws/held/file", "readable", "writable", "end"} {
						if !strings.Contains(text, good) {
							t.Errorf("no %q:\n%s", good, text)
						}
					}
				})
			})
		}
	})
}
