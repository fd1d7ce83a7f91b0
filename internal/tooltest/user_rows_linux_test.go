package tooltest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

var gettingStartedRows = []userRow{
	{promise: "the workspace can be written", page: "getting-started", script: "echo x > new; cat new; rm new", prints: "x\n"},
	{promise: "exit codes are the tool's", page: "getting-started", script: "exit 7", status: 7},
	{promise: "nothing else of the host exists", page: "getting-started", outside: "mkdir -p ~/.ssh ~/other; echo k > ~/.ssh/id; echo o > ~/other/f", script: "ls -A ~ | tr '\\n' ' '; ls ~/src; ls ~/other ~/.ssh 2>/dev/null || echo gone; ls /proc | grep -c '^[0-9]' | sed 's/^[1-9]$/few/'",
		prints: ".config .gitconfig bin src project\ngone\nfew\n", after: "rm -r ~/.ssh ~/other"},
	{promise: "HOME and /tmp are private", page: "getting-started", script: "echo x > ~/f; echo x > /tmp/f; touch /var/tmp/f; cat ~/f /tmp/f", prints: "x\nx\n", after: "test ! -e ~/f -a ! -e /tmp/f"},
	{promise: "directories of PATH are shown", page: "getting-started", outside: "printf '#!/bin/sh\\necho a tool\\n' > ~/bin/tool; chmod +x ~/bin/tool", script: "tool; echo x > ~/bin/other || echo refused", prints: "a tool\nrefused\n"},
	{promise: "build caches start with what the host's hold", page: "getting-started", outside: "mkdir -p ~/.cache/pip; echo cached > ~/.cache/pip/f", script: "cat ~/.cache/pip/f; echo x > ~/.cache/pip/g", prints: "cached\n", after: "test ! -e ~/.cache/pip/g"},
	{promise: "further directories to read and to write", page: "getting-started", outside: "mkdir -p ~/data ~/out; echo d > ~/data/f", script: "cat ~/data/f; echo x > ~/out/f; echo x > ~/data/f || echo refused", prints: "d\nrefused\n", after: "grep -q x ~/out/f",
		change: func(p *sandbox.Policy) {
			home := filepath.Dir(filepath.Dir(p.Dir))
			p.Files.Read, p.Files.Write = append(p.Files.Read, home+"/data"), append(p.Files.Write, home+"/out")
		}},
	{promise: "the deepest rule decides", page: "getting-started", outside: "mkdir -p secret/open; echo s > secret/f; echo o > secret/open/f", script: "cat secret/open/f; cat secret/f || echo hidden", prints: "o\nhidden\n", after: "rm -r secret",
		change: func(p *sandbox.Policy) {
			p.Files.Hide, p.Files.Read = append(p.Files.Hide, p.Dir+"/secret"), append(p.Files.Read, p.Dir+"/secret/open")
		}},
	{promise: "hidden names cannot be opened", page: "getting-started", outside: "echo SECRET > .env; echo SECRET > sub/.env.local", script: "cat .env sub/.env.local || echo refused", prints: "refused\n", denied: ".env", after: "rm .env sub/.env.local",
		change: func(p *sandbox.Policy) { p.Files.HideNames = []string{".env", ".env.*"} }},
	{promise: "a time limit ends everything", page: "getting-started", act: func(t *testing.T, p sandbox.Policy, _ string) {
		p.Limits.WallClock = 300 * time.Millisecond
		if err := sandboxed(t, p).Command("bash", "-c", "sleep 100 & sleep 100").Run(); !errors.Is(err, sandbox.ErrDeadline) {
			t.Error(err)
		}
	}},
	{promise: "cmd.Env passes the policy's filter", page: "getting-started", act: func(t *testing.T, p sandbox.Policy, _ string) {
		t.Setenv("API_TOKEN", "secret")
		cmd := sandboxed(t, p).Command("bash", "-c", "echo ${API_TOKEN-none} $CI")
		cmd.Env = append(os.Environ(), "CI=true")
		if out, err := cmd.Output(); err != nil || string(out) != "none true\n" {
			t.Errorf("%s, %v", out, err)
		}
	}},
	{promise: "what cannot be a workspace is a PolicyError", page: "getting-started", act: func(t *testing.T, _ sandbox.Policy, home string) {
		for _, dir := range []string{home, "/", home + "/bin", home + "/.config", home + "/none", filepath.Dir(home), "/tmp"} {
			var bad *sandbox.PolicyError
			if _, err := sandbox.New(sandbox.Workspace(dir)); !errors.As(err, &bad) || bad.Remedy == "" {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}},
	{promise: "Allows explains", page: "getting-started", act: func(t *testing.T, p sandbox.Policy, _ string) {
		for path, want := range map[string]bool{p.Dir + "/a": true, p.Dir + "/.git/hooks/pre-commit": false, p.Dir + "/.vscode/tasks.json": false, filepath.Dir(p.Dir) + "/wt/a": false} {
			if ok, why := sandbox.Allows(p, sandbox.Access{Op: sandbox.OpWrite, Path: path}); ok != want {
				t.Errorf("%s: %v, %v", path, ok, why)
			}
		}
	}},
	{promise: "what programs outside obey stays as it is", page: "protected-names", script: "for f in .vscode/settings.json .vscode/tasks.json .husky/pre-commit .git/hooks/pre-commit .envrc sub/.envrc; do echo x > $f || echo refused; done; cat .vscode/settings.json; git config core.hooksPath . || echo refused",
		prints: strings.Repeat("refused\n", 6) + "{}\nrefused\n", denied: ".vscode/settings.json", after: "git diff --quiet -- .vscode .husky"},
	{promise: "a tree that the tool has made is its own", page: "protected-names", script: "git clone -q --no-local . new; cd new; ls -d .vscode .husky; echo '{}' > .vscode/tasks.json; echo x > .envrc; git status --porcelain; git checkout -q HEAD~0 -- .vscode; cd ..; tar c -C new .vscode .husky | (mkdir out; tar x -C out); ls -A out; rm -rf new out; test ! -e new && echo gone",
		prints: ".husky\n.vscode\n?? .envrc\n?? .vscode/tasks.json\n.husky\n.vscode\ngone\n"},
	{promise: "git directories in it stay held", page: "protected-names", script: "git clone -q --no-local . new; cd new; mkdir .git/hooks && echo x > .git/hooks/pre-commit || echo refused; git config core.fsmonitor x || echo refused; cd ..; rm -rf new", prints: "refused\nrefused\n", denied: "new/.git/"},
	{promise: "what is root's alone stays so", page: "getting-started", script: "cat /etc/shadow || echo gone", prints: "gone\n"},
}

var harnessRows = []userRow{
	{promise: "Wrap, and ReportOf", page: "harnesses", act: func(t *testing.T, p sandbox.Policy, home string) {
		cmd := exec.Command("bash", "-c", "cat a; cat "+home+"/.gitconfig-work || echo gone")
		cmd.Dir = p.Dir
		if err := sandboxed(t, p).Wrap(cmd); err != nil {
			t.Fatal(err)
		}
		if out, err := cmd.Output(); err != nil || !strings.HasSuffix(string(out), "gone\n") || !sandbox.ReportOf(cmd).Held() {
			t.Errorf("%s, %v, %v", out, err, sandbox.ReportOf(cmd))
		}
	}},
	{promise: "without a Dir a command starts in the workspace", page: "harnesses", act: func(t *testing.T, p sandbox.Policy, _ string) {
		if out, err := sandboxed(t, p).Command("pwd").Output(); err != nil || string(out) != p.Dir+"\n" {
			t.Errorf("%s, %v", out, err)
		}
	}},
	{promise: "a Dir in the harness's /tmp is a PolicyError", page: "harnesses", act: func(t *testing.T, p sandbox.Policy, _ string) {
		cmd := sandboxed(t, p).Command("pwd")
		cmd.Dir = t.TempDir()
		var bad *sandbox.PolicyError
		if err := cmd.Run(); !errors.As(err, &bad) {
			t.Error(err)
		}
	}},
	{promise: "Setpgid and kill(-pid) end the whole sandbox", page: "harnesses", act: func(t *testing.T, p sandbox.Policy, _ string) {
		cmd := sandboxed(t, p).Command("bash", "-c", "setsid sleep 1000 & echo started; wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 8)); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil { // the end of every process that has it
			t.Errorf("%s, %v", rest, err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it was not killed")
		}
	}},
	{promise: "a HOME that is kept, and git config --global in it", page: "harnesses", outside: "mkdir -p -m 700 ~/.cache/harness/home; chmod 700 ~/.cache ~/.cache/harness", act: func(t *testing.T, p sandbox.Policy, home string) {
		p.Files.Home = home + "/.cache/harness/home"
		s := sandboxed(t, p)
		for _, c := range [][2]string{{"git config --global alias.x log; echo kept > ~/f", ""}, {"git config user.email; git config alias.x; cat ~/f; touch .DS_Store; git status --porcelain | grep DS_Store || echo ignored; rm .DS_Store", "me@work\nlog\nkept\nignored\n"}} {
			if out, err := s.Command("bash", "-ec", c[0]).CombinedOutput(); err != nil || string(out) != c[1] {
				t.Errorf("%s\n%s, %v", c[0], out, err)
			}
		}
	}},
}

// gitUse is a day's work; the file "a", or what FILE names, is changed.
const gitUse = `n=$(pwd | cksum | tr ' ' -); git status --porcelain; f=${FILE:-a}; git checkout -q -b topic-$n; echo x >> $f; git add $f; git commit -qm tool; git log -1 --format='%an %ae'
echo y >> $f; git stash -q; git stash pop -q; git commit -qam more; git checkout -q -b base-$n HEAD~2; git commit -q --allow-empty -m base; git rebase -q base-$n topic-$n; git log --oneline base-$n.. | wc -l
git gc -q; git fsck --no-dangling; git status --porcelain; echo done`

const gitUsed = "User me@work\n2\ndone\n"

var gitRows = []userRow{
	{promise: "git works in a repository", page: "harnesses", script: gitUse, prints: gitUsed},
	{promise: "git works in a linked worktree", page: "harnesses", workspace: "wt", script: gitUse, prints: gitUsed},
	{promise: "git works in a worktree inside the repository", page: "harnesses", workspace: "project/.claude/worktrees/x", script: gitUse, prints: gitUsed},
	{promise: "git works in a sub-directory", page: "harnesses", workspace: "project/sub", script: "FILE=s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a sub-directory of a linked worktree", page: "harnesses", workspace: "wt/sub", script: "FILE=s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a submodule", page: "harnesses", workspace: "project/lib", script: "FILE=sub/s\n" + gitUse, prints: gitUsed, after: "git -C ~/src/project submodule --quiet update -f"},
	{promise: "git works in a sub-directory of a submodule", page: "harnesses", workspace: "project/lib/sub", script: "FILE=s\n" + gitUse, prints: gitUsed, after: "git -C ~/src/project submodule --quiet update -f"},
	{promise: "git works in a submodule of a linked worktree", page: "harnesses", workspace: "wt/lib", script: "FILE=sub/s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a worktree of a submodule", page: "harnesses", workspace: "libwt", script: "FILE=sub/s\n" + gitUse, prints: gitUsed},
	{promise: "git works with a separate git directory that the policy names", page: "policy", workspace: "apart", script: gitUse, prints: gitUsed,
		change: func(p *sandbox.Policy) {
			p.Files.Write = append(p.Files.Write, filepath.Dir(p.Dir)+"/elsewhere.git")
		}},
	{promise: "identity by includeIf, in a repository that the tool makes", page: "harnesses", script: "git init -q new; cd new; echo x > x; git add x; git commit -qm x; git log -1 --format=%ae; cd ..; rm -rf new", prints: "me@work\n"},
	{promise: "a filter's content is committed", page: "harnesses", script: "git check-attr filter b.bin; git cat-file -p :b.bin; echo more > c.bin; git add c.bin; git cat-file -p :c.bin; git status --porcelain; git rm -qf c.bin", prints: "b.bin: filter: lfs\npointer:content\npointer:more\nA  c.bin\n"},
	{promise: "a required filter that is not inside is an error", page: "harnesses", outside: `mkdir -p ~/tools; printf '#!/bin/sh\nsed s/^/P:/' > ~/tools/clean; chmod +x ~/tools/clean; printf '[filter "own"]\n\tclean = ~/tools/clean\n\trequired\n' >> ~/.gitconfig-work; echo '*.own filter=own' > .git/info/attributes`,
		script: "echo raw > a.own; git add a.own || echo refused; git ls-files a.own; rm a.own", prints: "refused\n", after: `rm .git/info/attributes; rm -r ~/tools; sed -i '/filter "own"/,$d' ~/.gitconfig-work`},
	{promise: "the user's ignore file and attributes", page: "harnesses", script: "touch .DS_Store; git status --porcelain; git check-ignore .DS_Store; git check-attr eol x.crlf; rm .DS_Store", prints: ".DS_Store\nx.crlf: eol: crlf\n"},
	{promise: "credentials stay outside", page: "harnesses", outside: `printf '[credential]\n\thelper = store\n[url "https://tok:en@h/"]\n\tinsteadOf = h:\n' >> ~/.gitconfig; echo https://u:tok@h > ~/.git-credentials`,
		script: "grep -r -e tok -e helper ~/.gitconfig ~/.config ~/.git-credentials 2>/dev/null || echo none; git config --get-regexp '^url'", prints: "none\nurl.https://h/.insteadof h:\n", after: "rm ~/.git-credentials; sed -i '/credential/,$d' ~/.gitconfig"},
	{promise: "a caller's own Hide around a worktree is a refusal", page: "policy", workspace: "wt", script: "git status 2>&1 | cut -c1-26", status: 128, prints: "fatal: not a git repositor\n",
		change: func(p *sandbox.Policy) { p.Files.Hide = append(p.Files.Hide, filepath.Dir(p.Dir)) }},
}

// sandboxed makes the policy's sandbox, for the test.
func sandboxed(t *testing.T, p sandbox.Policy) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// opened opens a session, for the test.
func opened(t *testing.T, p sandbox.Policy) *sandbox.Session {
	t.Helper()
	sess, err := sandboxed(t, p).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	return sess
}

// dualStack serves HTTP at every address of the loopback, of both families by one socket, as web servers in Node.js and
// Go do.
const dualStack = `import http.server, socket, sys
class S(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served\n")
    def log_message(self, *a): pass
S(("::", 8123), H).serve_forever()
`

var sessionRows = []userRow{
	{promise: "commands share files, processes and servers", page: "sessions", needs: "python3 curl", act: func(t *testing.T, p sandbox.Policy, _ string) {
		p.Network.Listen = []uint16{8123}
		sess := opened(t, p)
		if err := sess.Files().WriteFile("/tmp/server.py", []byte(dualStack), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := sess.Command("bash", "-c", "echo kept > ~/f; python3 /tmp/server.py >/tmp/log 2>&1 & echo $! > /tmp/pid").CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := sess.WaitPort(ctx, 8123); err != nil {
			t.Fatal(err)
		}
		const script = "cat ~/f; for h in 127.0.0.1 localhost '[::1]'; do curl -gsS http://$h:8123/; done; kill -0 $(cat /tmp/pid) && echo alive"
		if out, err := sess.Command("bash", "-c", script).CombinedOutput(); err != nil || string(out) != "kept\nserved\nserved\nserved\nalive\n" {
			t.Errorf("%s, %v", out, err)
		}
		if conn, err := sess.DialInside(ctx, 8123); err != nil {
			t.Error(err)
		} else {
			conn.Close()
		}
		if ports, err := sess.Ports(); err != nil || len(ports) != 1 || ports[0].Port != 8123 {
			t.Errorf("%v, %v", ports, err)
		}
	}},
	{promise: "files as the tools see them", page: "sessions", act: func(t *testing.T, p sandbox.Policy, home string) {
		files := opened(t, p).Files()
		if err := files.Replace("a", []byte("edited\n")); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(p.Dir + "/a"); err != nil || string(text) != "edited\n" {
			t.Errorf("%s, %v", text, err)
		}
		for name, what := range map[string]func(string) error{
			".git/hooks/pre-commit": func(n string) error { return files.WriteFile(n, []byte("x"), 0o755) }, ".vscode/settings.json": func(n string) error { return files.Replace(n, []byte("x")) },
			home + "/.gitconfig-work": func(n string) error { _, err := files.ReadFile(n); return err }, home + "/src/wt/a": func(n string) error { _, err := files.ReadFile(n); return err }} {
			if err := what(name); err == nil {
				t.Errorf("%s was done", name)
			}
		}
	}, after: "git checkout -q a"},
	{promise: "git status and commit belong into the session", page: "sessions", act: func(t *testing.T, p sandbox.Policy, _ string) {
		sess := opened(t, p)
		for _, c := range [][2]string{{"echo x >> a; git commit -qam session; git log -1 --format=%s", "session\n"}, {"git status --porcelain; git diff HEAD~1 --stat | tail -1; git reset -q --hard HEAD~1", " 1 file changed, 1 insertion(+)\n"}} {
			if out, err := sess.Command("bash", "-ec", c[0]).CombinedOutput(); err != nil || string(out) != c[1] {
				t.Errorf("%s\n%s, %v", c[0], out, err)
			}
		}
	}},
}

var networkRows = []userRow{
	{promise: "no host is reached, and the client prints the reason", page: "network", needs: "curl", script: "curl -sS http://host.example/ | grep -c 'no entry of the allow-list'; { curl -sS https://host.example/ 2>&1 || true; } | grep -o 403", prints: "1\n403\n", denied: "host.example"},
	{promise: "the tool's own server of both families", page: "network", needs: "python3 curl", script: "cat > /tmp/s.py <<'END'\n" + dualStack + "END\npython3 /tmp/s.py & until curl -s http://127.0.0.1:8123/ >/dev/null; do sleep .05; done; curl -gs http://[::1]:8123/; curl -s http://localhost:8123/; kill $!", prints: "served\nserved\n"},
	{promise: "it is reached under every name of the loopback, by programs that know proxies too", page: "network", needs: "python3 curl", script: "cat > /tmp/s.py <<'END'\n" + dualStack + `END
python3 /tmp/s.py & until curl -s http://127.0.0.1:8123/ >/dev/null; do sleep .05; done
all="127.0.0.1 127.0.0.2 0.0.0.0 localhost [::1] [::] [::ffff:127.0.0.1] $(uname -n)"
for h in $all x.localhost; do curl -gsS http://$h:8123/; NO_PROXY= no_proxy= curl -gsS http://$h:8123/; done | sort | uniq -c | xargs
python3 -c 'import sys, urllib.request as u; print(sum(u.urlopen("http://%s:8123/" % h).read() == b"served\n" for h in sys.argv[1:]))' $all
kill $!`, prints: "18 served\n8\n"},
	{promise: "a host that the policy names is reached", page: "network", needs: "curl", act: func(t *testing.T, p sandbox.Policy, _ string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
		defer server.Close()
		p.Network.Hosts = []string{server.Listener.Addr().String()}
		cmd := sandboxed(t, p).Command("bash", "-c", "export no_proxy= NO_PROXY=; curl -sS "+server.URL+"; curl -sS -o /dev/null -w ' %{http_code}' http://host.example/")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "hello 403" || len(cmd.Report().Violations) != 1 {
			t.Errorf("%s, %v, %v", out, err, cmd.Report())
		}
	}},
	{promise: "a credential is a placeholder inside", page: "network", act: func(t *testing.T, p sandbox.Policy, _ string) {
		p.Network.Hosts = []string{"api.example.com:443"}
		p.Network.Credentials = []policy.Credential{{Name: "API_TOKEN", Secret: "the-real-one", Hosts: p.Network.Hosts, Place: policy.PlaceBearer}}
		out, err := sandboxed(t, p).Command("bash", "-c", "test -n \"$API_TOKEN\"; env; cat ~/.gitconfig").CombinedOutput()
		if err != nil || strings.Contains(string(out), "the-real-one") {
			t.Errorf("%s, %v", out, err)
		}
	}},
}
