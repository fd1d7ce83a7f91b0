package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// systemEntries show the host's programs, a /proc and a /dev.
func systemEntries() []rootfs.Entry {
	entries := []rootfs.Entry{rootfs.Proc{At: "/proc"}, rootfs.Dev{At: "/dev"}}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"} {
		if target, err := os.Readlink(dir); err == nil {
			entries = append(entries, rootfs.Symlink{At: dir, Target: target})
		} else {
			entries = append(entries, rootfs.Bind{Source: dir, At: dir, Optional: true})
		}
	}
	return entries
}

// A layoutCase is a shell script in a layout: what it prints, and what the host
// has afterwards.
type layoutCase struct {
	name    string
	entries func(host string) []rootfs.Entry
	policy  func(p *sandbox.Policy)
	script  string
	want    string // its output; "!": Start fails with wantErr
	wantErr error
	after   string // a script of the host's, in the host directory, that succeeds
}

const startFails = "!"

func one(e func(host string) rootfs.Entry) func(string) []rootfs.Entry {
	return func(host string) []rootfs.Entry { return []rootfs.Entry{e(host)} }
}

// runLayoutCases runs each case with every mechanism and with Nest, as root and
// as an ordinary user.
func runLayoutCases(t *testing.T, cases []layoutCase) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, nest := range []bool{false, true} {
				for _, c := range cases {
					t.Run(fmt.Sprintf("%s/nest %v", strings.ReplaceAll(c.name, ",", ""), nest), func(t *testing.T) { c.run(t, nest) })
				}
			}
		})
	})
}

func (c layoutCase) run(t *testing.T, nest bool) {
	host := layoutHost(t)
	p := sandbox.Policy{Root: &rootfs.Layout{Nest: nest}, Files: sandbox.Files{Protect: policy.Protect{Off: true}}}
	p.Root.Entries = systemEntries()
	if c.entries != nil {
		p.Root.Entries = append(p.Root.Entries, c.entries(host)...)
	}
	if nest {
		p.Syscalls = seccomp.Off()
	}
	if c.policy != nil {
		c.policy(&p)
	}
	out, err := runLayout(p, c.script)
	switch {
	case c.want == startFails:
		if err == nil || c.wantErr != nil && !errors.Is(err, c.wantErr) {
			t.Errorf("error %v, want %v; output %q", err, c.wantErr, out)
		}
	case err != nil:
		t.Errorf("%v; output %q", err, out)
	case out != c.want:
		t.Errorf("output %q, want %q", out, c.want)
	}
	if c.after != "" {
		if out, err := hostScript(host, c.after); err != nil {
			t.Errorf("afterwards on the host, %s: %v %s", c.after, err, out)
		}
	}
}

func runLayout(p sandbox.Policy, script string) (string, error) {
	s, err := sandbox.New(p)
	if err != nil {
		return "", err
	}
	defer s.Close()
	cmd := s.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// layoutHost makes the host's side: a file, a directory with one, and a secret
// that hostile links name.
func layoutHost(t *testing.T) string {
	t.Helper()
	host, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"tree/sub", "other", "upper", "work", "secret", "hostile"} {
		if err := os.MkdirAll(filepath.Join(host, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"tree/file": "one", "tree/sub/file": "two", "other/file": "three", "secret/file": "secret"} {
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Each leads to the secret for whoever follows it on the host, and the second
	// for whoever keeps the host's root at /oldroot (CVE-2026-87766).
	for name, target := range map[string]string{
		"absolute": filepath.Join(host, "secret"), "oldroot": "/oldroot" + host + "/secret", "dots": strings.Repeat("../", 20) + host + "/secret",
		"proc": "/proc/self/root" + host + "/secret", "file": filepath.Join(host, "secret", "file"), "new": filepath.Join(host, "secret", "new"),
	} {
		if err := os.Symlink(target, filepath.Join(host, "hostile", name)); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func hostScript(dir, script string) (string, error) {
	cmd := hostShell(script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func at(host, name string) string { return filepath.Join(host, name) }

func TestKernelLayoutBinds(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	bind := func(b rootfs.Bind) func(string) []rootfs.Entry {
		return one(func(host string) rootfs.Entry {
			b := b
			b.Source = at(host, "tree")
			return b
		})
	}
	runLayoutCases(t, []layoutCase{
		{name: "a bind can be read and not written", entries: bind(rootfs.Bind{At: "/b"}),
			script: "cat /b/sub/file; echo x 2>/dev/null >/b/file || echo refused", want: "tworefused", after: "grep -q one tree/file"},
		{name: "a writable bind is the host's", entries: bind(rootfs.Bind{At: "/b", Write: true}),
			script: "echo x >/b/file; mkdir /b/new; cat /b/file", want: "x", after: "grep -q x tree/file && test -d tree/new"},
		{name: "a bind of a file", entries: one(func(h string) rootfs.Entry { return rootfs.Bind{Source: at(h, "tree/file"), At: "/a/b/f"} }),
			script: "cat /a/b/f; ls /a/b", want: "onef"},
		{name: "nothing else is there", script: "ls -d /tmp /home /root /var 2>/dev/null | wc -l", want: "0"},
		{name: "what can be executed", entries: bind(rootfs.Bind{At: "/b", Write: true}),
			script: "cp /bin/true /b/p; /b/p && echo ran", want: "ran"},
		{name: "what cannot be executed", entries: bind(rootfs.Bind{At: "/b", Write: true, NoExec: true}),
			script: "cp /bin/true /b/p; /b/p 2>/dev/null || echo refused", want: "refused"},
		{name: "device files of a bind with devices work", entries: one(func(string) rootfs.Entry { return rootfs.Bind{Source: "/dev", At: "/d", Devices: true} }),
			script: "head -c 2 /d/zero | od -An -tx1", want: " 00 00"},
		{name: "device files of another do not", entries: one(func(string) rootfs.Entry { return rootfs.Bind{Source: "/dev", At: "/d"} }),
			script: "head -c 2 /d/zero 2>/dev/null || echo refused", want: "refused"},
		{name: "mounts in a read-only bind are read-only", entries: one(func(string) rootfs.Entry { return rootfs.Bind{Source: "/dev", At: "/d", Devices: true} }),
			script: "touch /d/shm/$$ 2>/dev/null || echo refused", want: "refused"},
		{name: "an optional bind that is not there", entries: one(func(h string) rootfs.Entry {
			return rootfs.Bind{Source: at(h, "none"), At: "/b", Optional: true}
		}), script: "ls -d /b 2>/dev/null || echo none", want: "none"},
		{name: "a bind that is not there", entries: one(func(h string) rootfs.Entry { return rootfs.Bind{Source: at(h, "none"), At: "/b"} }),
			want: startFails, wantErr: fs.ErrNotExist},
		{name: "an optional bind below a file is an error still", entries: one(func(h string) rootfs.Entry {
			return rootfs.Bind{Source: at(h, "tree/file/x"), At: "/b", Optional: true}
		}), want: startFails},
		{name: "a later entry covers an earlier one", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Bind{Source: at(h, "tree"), At: "/b"}, rootfs.Bind{Source: at(h, "other"), At: "/b/sub"}, rootfs.Bind{Source: at(h, "other"), At: "/c/sub"}, rootfs.Bind{Source: at(h, "tree"), At: "/c"}}
		}, script: "cat /b/sub/file /c/sub/file", want: "threetwo"},
		{name: "the host's root, with something in it", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}, rootfs.Dev{At: "/dev"}, rootfs.Proc{At: "/proc"}, rootfs.Bind{Source: at(h, "other"), At: at(h, "tree"), Write: true}}
		}, script: `cat "$PWD/tree/file" 2>/dev/null; ls /.. | grep -c ^usr$; grep -c " / / " /proc/self/mountinfo`, want: "1\n1"},
	})
}

func TestKernelLayoutFiles(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	runLayoutCases(t, []layoutCase{
		{name: "a tmpfs", entries: one(func(string) rootfs.Entry {
			return rootfs.Tmpfs{At: "/t", Mode: 0o1777&0o777 | fs.ModeSticky, Bytes: 1 << 20}
		}),
			script: "stat -c %a /t; df --output=size --block-size=1K /t | tail -n1 | tr -d ' '; echo x >/t/x; cat /t/x; head -c 2000000 /dev/zero 2>/dev/null >/t/y || echo full", want: "1777\n1024\nx\nfull"},
		{name: "a tmpfs by default", entries: one(func(string) rootfs.Entry { return rootfs.Tmpfs{At: "/t"} }), script: "stat -c %a /t", want: "755"},
		{name: "directories, and the modes of those on the way", entries: func(string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/a/b/c"}, rootfs.Dir{At: "/p/q", Mode: 0o700}, rootfs.Dir{At: "/n/o", Mode: rootfs.NoAccess}, rootfs.Dir{At: "/a/b", Mode: 0o700}}
		}, script: "stat -c %a /a /a/b /a/b/c /p /p/q /n /n/o | tr '\\n' ' '", want: "755 755 755 700 700 700 0 "},
		{name: "a file", entries: one(func(string) rootfs.Entry { return rootfs.File{At: "/x/y", Data: "text", Mode: 0o640} }),
			script: "cat /x/y; stat -c %a /x/y", want: "text640"},
		{name: "a file written on the host", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Bind{Source: at(h, "tree"), At: "/b", Write: true}, rootfs.File{At: "/b/file", Data: "new"}}
		}, script: "cat /b/file", want: "new", after: "grep -q new tree/file"},
		{name: "data that can be written and is forgotten", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Bind{Source: at(h, "tree"), At: "/b", Write: true}, rootfs.DataBind{At: "/b/file", Data: "new", Write: true}}
		}, script: "echo more >>/b/file; cat /b/file; stat -c %a /b/file", want: "newmore\n600", after: "grep -q one tree/file"},
		{name: "data that cannot be written", entries: one(func(string) rootfs.Entry { return rootfs.DataBind{At: "/d", Data: "new", Mode: 0o666} }),
			script: "cat /d; echo x 2>/dev/null >/d || echo refused", want: "newrefused"},
		{name: "a link", entries: func(string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Symlink{At: "/l", Target: "/etc"}, rootfs.Symlink{At: "/l", Target: "/etc"}}
		}, script: "readlink /l", want: "/etc"},
		{name: "another link in its place", entries: func(string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Symlink{At: "/l", Target: "/etc"}, rootfs.Symlink{At: "/l", Target: "/usr"}}
		}, want: startFails, wantErr: fs.ErrExist},
		{name: "a mode", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/a"}, rootfs.Chmod{At: "/a", Mode: 0o711}}
		}, script: "stat -c %a /a", want: "711"},
		{name: "a mode of nothing", entries: one(func(string) rootfs.Entry { return rootfs.Chmod{At: "/a", Mode: 0o711} }), want: startFails, wantErr: fs.ErrNotExist},
		{name: "a mount made read-only, and one in it not", entries: func(string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Tmpfs{At: "/t"}, rootfs.Tmpfs{At: "/t/u"}, rootfs.RemountReadOnly{At: "/t"}}
		}, script: "touch /t/x 2>/dev/null || echo refused; touch /t/u/x && echo ok", want: "refused\nok"},
		{name: "the root made read-only, with all kinds of files in it", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/w"}, rootfs.Bind{Source: at(h, "tree/file"), At: "/w/bound"}, rootfs.DataBind{At: "/w/data", Data: "new"},
				rootfs.File{At: "/w/file", Data: "new"}, rootfs.Dev{At: "/w/dev"}, rootfs.Symlink{At: "/w/link", Target: "file"}, rootfs.RemountReadOnly{At: "/"}}
		}, script: "touch /w/x 2>/dev/null || echo refused; cat /w/bound", want: "refused\none"},
		{name: "a place that is no mount made read-only", entries: func(string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/w"}, rootfs.RemountReadOnly{At: "/w"}}
		}, want: startFails},
		{name: "something in what is read-only", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Bind{Source: at(h, "tree"), At: "/b"}, rootfs.Dir{At: "/b/new"}}
		}, want: startFails, after: "! test -e tree/new"},
		{name: "message queues", entries: one(func(string) rootfs.Entry { return rootfs.Mqueue{At: "/q"} }), script: "stat -f -c %T /q; ls /q | wc -l", want: "mqueue\n0"},
	})
}

func TestKernelLayoutOverlays(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	layers := func(h string) []string { return []string{at(h, "tree"), at(h, "other")} }
	runLayoutCases(t, []layoutCase{
		{name: "the last layer is on top", entries: one(func(h string) rootfs.Entry { return rootfs.ReadOnlyOverlay{At: "/o", Layers: layers(h)} }),
			script: "cat /o/file /o/sub/file; touch /o/x 2>/dev/null || echo refused", want: "threetworefused"},
		{name: "writes are forgotten", entries: one(func(h string) rootfs.Entry { return rootfs.TmpOverlay{At: "/o", Layers: layers(h)} }),
			script: "echo x >/o/file; cat /o/file", want: "x", after: "grep -q three other/file && test -z \"$(ls upper)\""},
		{name: "two overlays do not meet", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.TmpOverlay{At: "/o", Layers: layers(h)}, rootfs.TmpOverlay{At: "/p", Layers: layers(h)}}
		}, script: "echo x >/o/file; cat /p/file", want: "three"},
		{name: "writes go to upper", entries: one(func(h string) rootfs.Entry {
			return rootfs.Overlay{At: "/o", Layers: layers(h), Upper: at(h, "upper"), Work: at(h, "work")}
		}), script: "echo x >/o/file; cat /o/file", want: "x", after: "grep -q three other/file && grep -q x upper/file"},
	})
}

func TestKernelLayoutStaysInside(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	hostile := func(e ...rootfs.Entry) func(string) []rootfs.Entry {
		return func(h string) []rootfs.Entry {
			return append([]rootfs.Entry{rootfs.Bind{Source: at(h, "hostile"), At: "/w", Write: true}}, e...)
		}
	}
	untouched := `test "$(ls secret)" = file && grep -q secret secret/file && test "$(stat -c %a secret secret/file | tr '\n' ' ')" = "755 644 "`
	var cases []layoutCase
	for _, link := range []string{"absolute", "oldroot", "dots", "proc"} {
		for _, e := range []rootfs.Entry{
			rootfs.Dir{At: "/w/" + link + "/planted"}, rootfs.File{At: "/w/" + link + "/planted", Data: "x"}, rootfs.Tmpfs{At: "/w/" + link + "/planted"},
			rootfs.Symlink{At: "/w/" + link + "/planted", Target: "x"}, rootfs.DataBind{At: "/w/" + link + "/planted"}, rootfs.Chmod{At: "/w/" + link, Mode: 0o777},
			rootfs.Bind{Source: "/usr", At: "/w/" + link + "/planted"}, rootfs.Mqueue{At: "/w/" + link}, rootfs.Dev{At: "/w/" + link + "/planted"},
		} {
			cases = append(cases, layoutCase{name: fmt.Sprintf("%T through the link %s", e, link), entries: hostile(e), want: startFails, after: untouched})
		}
	}
	for _, link := range []string{"file", "new"} {
		cases = append(cases, layoutCase{name: "a file through the link " + link, entries: hostile(rootfs.File{At: "/w/" + link, Data: "x"}), want: startFails, after: untouched})
	}
	cases = append(cases,
		layoutCase{name: "an absolute link to something inside", entries: func(h string) []rootfs.Entry {
			return []rootfs.Entry{rootfs.Dir{At: "/run"}, rootfs.Symlink{At: "/var/run", Target: "/run"}, rootfs.Tmpfs{At: "/var/run/a"}, rootfs.File{At: "/var/run/a/f", Data: "x"}, rootfs.Dir{At: "/var/run/b/c"}}
		}, script: "cat /run/a/f; ls -d /run/b/c", want: "x/run/b/c"},
		layoutCase{name: "a link in the tree to something inside", entries: func(h string) []rootfs.Entry {
			return append([]rootfs.Entry{rootfs.Dir{At: at(h, "secret")}}, hostile(rootfs.File{At: "/w/absolute/planted", Data: "x"})(h)...)
		}, script: "cat /w/absolute/planted", want: "x", after: untouched},
	)
	runLayoutCases(t, cases)
}
