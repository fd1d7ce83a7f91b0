package resolve_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// under puts root before every path of f.
func under(root string, f policy.Files) policy.Files {
	for _, list := range []*[]string{&f.Read, &f.Write, &f.Hide, &f.Private, &f.CopyOnWrite} {
		moved := make([]string, len(*list))
		for i, p := range *list {
			moved[i] = filepath.Join(root, p)
		}
		*list = moved
	}
	made := make([]policy.File, len(f.Make))
	for i, m := range f.Make {
		m.Path = filepath.Join(root, m.Path)
		made[i] = m
	}
	f.Make = made
	return f
}

// show prints a layout without root.
func show(l resolve.Tree, root string) string {
	var words []string
	for _, e := range l.Entries {
		kind := [...]string{"read", "write", "copy", "private", "make", "socket", "hide"}[e.Kind]
		slash := ""
		if e.Dir {
			slash = "/"
		}
		words = append(words, kind+" "+strings.TrimPrefix(e.Path, root+"/")+slash)
	}
	for _, k := range l.Links {
		words = append(words, "link "+strings.TrimPrefix(k.Path, root+"/")+" "+strings.TrimPrefix(k.Target, root+"/"))
	}
	return strings.Join(words, ", ")
}

// noPreset takes every directory for a workspace.
func noPreset(string, bool) (problem, remedy string) { return "", "" }

func TestResolve(t *testing.T) {
	names := []string{"usr/bin/sh", "usr/lib/x", "bin -> usr/bin", "lib -> /ROOT/usr/lib", "a/b/c/d", "a-b/x", "home/me/.ssh/key", "home/me/p/f", "home/me/p/.env",
		"data/home/you/q/f", "h2 -> data/home", "data/home/you/cfg -> dot/cfg", "data/home/you/dot/cfg/nvim/init", "chain -> bin/../lib", "gone -> nowhere"}
	for i, n := range names {
		names[i] = strings.Replace(n, "/ROOT", "ROOT", 1)
	}
	root := fixture.Tree(t, names...)
	tests := []struct {
		name  string
		files policy.Files
		want  string
	}{
		{"nothing", policy.Files{}, ""},
		{"a merged /usr", policy.Files{Read: []string{"/bin", "/usr", "/lib"}}, "read usr/, link bin usr/bin, link lib usr/lib"},
		{"a link whose target goes up behind a link", policy.Files{Read: []string{"/chain/x"}}, "read usr/lib/x, link bin usr/bin, link chain bin/../lib"},
		{"the same rule twice, also by another name", policy.Files{Read: []string{"/bin/sh", "/usr/bin/sh", "/bin/sh"}}, "read usr/bin/sh, link bin usr/bin"},
		{"a rule inside one of its kind", policy.Files{Read: []string{"/a/b/c", "/a", "/a-b"}}, "read a/, read a-b/"},
		{"kinds in between", policy.Files{Read: []string{"/a", "/a/b/c"}, Write: []string{"/a/b"}}, "read a/, write a/b/, read a/b/c/"},
		{"neighbours that sort between a directory and its files", policy.Files{Read: []string{"/a"}, Write: []string{"/a-b", "/a/b"}}, "read a/, write a/b/, write a-b/"},
		{"a secret in what is shown", policy.Files{Read: []string{"/home"}, Hide: []string{"/home/me/.ssh"}}, "read home/, hide home/me/.ssh/"},
		{"a secret where nothing is shown", policy.Files{Write: []string{"/home/me/p"}, Hide: []string{"/home", "/home/me/.ssh"}}, "write home/me/p/"},
		{"an absent secret in what can only be read", policy.Files{Read: []string{"/home"}, Hide: []string{"/home/me/none"}}, "read home/"},
		{"what is shown inside what is hidden", policy.Files{Read: []string{"/home", "/home/me/p"}, Hide: []string{"/home/me"}}, "read home/, hide home/me/, read home/me/p/"},
		{"a project in a private home", policy.Files{Write: []string{"/home/me/p"}, Private: []string{"/home/me"}, Hide: []string{"/home/me/.ssh"}, Make: []policy.File{{Path: "/home/me/.gitconfig"}}},
			"private home/me/, make home/me/.gitconfig, write home/me/p/"},
		{"private directories that are not on the host", policy.Files{Private: []string{"/home/tool", "/home/tool/x"}}, "private home/tool/, private home/tool/x/"},
		{"a home behind links", policy.Files{Write: []string{"/h2/you/q"}, Private: []string{"/h2/you"}}, "private data/home/you/, write data/home/you/q/, link h2 data/home"},
		{"a link inside a private home", policy.Files{Read: []string{"/h2/you/cfg/nvim"}, Private: []string{"/data/home/you"}, Make: []policy.File{{Path: "/h2/you/cfg/git"}}},
			"private data/home/you/, make data/home/you/dot/cfg/git, read data/home/you/dot/cfg/nvim/, link data/home/you/cfg dot/cfg, link h2 data/home"},
		{"a copy with something of the host's in it", policy.Files{CopyOnWrite: []string{"/a"}, Read: []string{"/a/b"}}, "copy a/, read a/b/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := resolve.Files(under(root, tt.files), noPreset)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(l, root); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	names := []string{"a/f", "b/", "loop1 -> loop2", "loop2 -> loop1", "self -> self/x", "gone -> nowhere", "proc -> /proc/self", "l0 -> b"}
	for i := range 41 {
		names = append(names, fmt.Sprintf("l%d -> l%d", i+1, i))
	}
	root := fixture.Tree(t, names...)
	tests := []struct {
		name  string
		files policy.Files
		field string
		err   error
	}{
		{"what does not exist", policy.Files{Read: []string{"/a", "/none"}}, "Files.Read[1]", fs.ErrNotExist},
		{"a writable place that does not exist", policy.Files{Write: []string{"/a/none"}}, "Files.Write[0]", fs.ErrNotExist},
		{"a copy of nothing", policy.Files{CopyOnWrite: []string{"/none"}}, "Files.CopyOnWrite[0]", fs.ErrNotExist},
		{"a copy of a file", policy.Files{CopyOnWrite: []string{"/a/f"}}, "Files.CopyOnWrite[0]", syscall.ENOTDIR},
		{"a loop", policy.Files{Read: []string{"/loop1"}}, "Files.Read[0]", syscall.ELOOP},
		{"a link into itself", policy.Files{Read: []string{"/self"}}, "Files.Read[0]", syscall.ELOOP},
		{"more links than the kernel follows", policy.Files{Read: []string{"/l40"}}, "Files.Read[0]", syscall.ELOOP},
		{"a pattern", policy.Files{Read: []string{"/a/*"}}, "Files.Read[0]", fs.ErrNotExist},
		{"a hidden pattern, where nothing can be made", policy.Files{Read: []string{"/a"}, Hide: []string{"/a/b/{c,d}"}}, "Files.Hide[0]", fs.ErrNotExist},
		{"a hidden pattern, where nothing is shown", policy.Files{Hide: []string{"/a/b/?"}}, "Files.Hide[0]", fs.ErrNotExist},
		{"a dangling link", policy.Files{Read: []string{"/gone"}}, "Files.Read[0]", fs.ErrNotExist},
		{"a private place at a dangling link", policy.Files{Private: []string{"/gone"}}, "Files.Private[0]", fs.ErrNotExist},
		{"something below a file", policy.Files{Read: []string{"/a/f/g"}}, "Files.Read[0]", syscall.ENOTDIR},
		{"a private file", policy.Files{Private: []string{"/a/f"}}, "Files.Private[0]", syscall.ENOTDIR},
		{"a link into /proc", policy.Files{Read: []string{"/proc"}}, "Files.Read[0]", nil},
		{"two kinds at one place", policy.Files{Read: []string{"/a"}, Write: []string{"/a"}}, "Files.Write[0]", nil},
		{"two kinds at one place by two names", policy.Files{Read: []string{"/b"}, Write: []string{"/l3"}}, "Files.Write[0]", nil},
		{"a hidden place that is also shown", policy.Files{Read: []string{"/a"}, Hide: []string{"/a"}}, "Files.Hide[0]", nil},
		{"two files at one place", policy.Files{Make: []policy.File{{Path: "/x", Data: "1"}, {Path: "/x", Data: "2"}}}, "Files.Make[1].Path", nil},
		{"a file in what is the host's", policy.Files{Read: []string{"/a"}, Make: []policy.File{{Path: "/a/g"}}}, "Files.Make[0].Path", nil},
		{"a file below a file that is made", policy.Files{Private: []string{"/b"}, Make: []policy.File{{Path: "/b/x"}, {Path: "/b/x/y"}}}, "Files.Make[1].Path", syscall.ENOTDIR},
		{"a directory of the host below a file that is made", policy.Files{Make: []policy.File{{Path: "/a"}}, Read: []string{"/a/f"}}, "Files.Read[0]", syscall.ENOTDIR},
		{"a private place below a file that is made", policy.Files{Make: []policy.File{{Path: "/a"}}, Private: []string{"/a/p"}}, "Files.Private[0]", syscall.ENOTDIR},
		{"a file below a file of the host", policy.Files{Make: []policy.File{{Path: "/a/f/g"}}}, "Files.Make[0].Path", syscall.ENOTDIR},
		{"a loop to write in", policy.Files{Write: []string{"/loop1"}}, "Files.Write[0]", syscall.ELOOP},
		{"a loop to copy", policy.Files{CopyOnWrite: []string{"/loop1/x"}}, "Files.CopyOnWrite[0]", syscall.ELOOP},
		{"a loop to hide", policy.Files{Hide: []string{"/loop2"}}, "Files.Hide[0]", syscall.ELOOP},
		{"a loop to make private", policy.Files{Private: []string{"/self"}}, "Files.Private[0]", syscall.ELOOP},
		{"a file in a loop", policy.Files{Make: []policy.File{{Path: "/loop1/x"}}}, "Files.Make[0].Path", syscall.ELOOP},
		{"something hidden below a file", policy.Files{Hide: []string{"/a/f/g"}}, "Files.Hide[0]", syscall.ENOTDIR},
		{"a file where a link will be", policy.Files{Read: []string{"/l0"}, Make: []policy.File{{Path: "/l0"}}}, "Files.Make[0].Path", nil},
		{"an absent private place in what is the host's", policy.Files{Read: []string{"/a"}, Private: []string{"/a/none"}}, "Files.Private[0]", fs.ErrNotExist},
		{"an absent secret in what can be written", policy.Files{Write: []string{"/a"}, Hide: []string{"/a/none"}}, "Files.Hide[0]", fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := resolve.Files(under(root, tt.files), noPreset)
			fixture.SaysWhatToDo(t, err, tt.field)
			if tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
		})
	}
}

// The kernel follows 40 links and no more; so does find.
func TestResolveFollowsAsManyLinksAsTheKernel(t *testing.T) {
	names := []string{"b/", "l0 -> b"}
	for i := range 45 {
		names = append(names, fmt.Sprintf("l%d -> l%d", i+1, i))
	}
	root := fixture.Tree(t, names...)
	for i := range 45 {
		p := fmt.Sprintf("%s/l%d", root, i)
		_, want := os.Stat(p)
		if got := resolve.New().Find(p).Err; (got == nil) != (want == nil) {
			t.Errorf("l%d: %v, the kernel says %v", i, got, want)
		}
	}
}

func TestResolveDevices(t *testing.T) {
	l, err := resolve.Files(policy.Files{Read: []string{"/dev/null"}, Write: []string{"/dev/zero"}}, noPreset)
	if err != nil || len(l.Entries) != 0 {
		t.Errorf("what every sandbox has: %v, %v", l, err)
	}
	for _, p := range []string{"/dev/stdin", "/dev/fd"} {
		if _, err := os.Lstat(p); err != nil {
			continue
		}
		if l, err := resolve.Files(policy.Files{Write: []string{p}}, noPreset); err == nil {
			t.Errorf("%s leads to %v", p, l)
		}
	}
}

func TestResolveManyRules(t *testing.T) {
	kerneltest.Long(t)
	root := fixture.Tree(t, "bin -> usr", "usr/")
	var f policy.Files
	for i := range 10000 {
		p := fmt.Sprintf("%s/usr/d%d/e/f%d", root, i%100, i)
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			f.Read = append(f.Read, strings.Replace(p, "/usr/", "/bin/", 1))
		case 1:
			f.Write = append(f.Write, p)
		default:
			f.Private = append(f.Private, p)
		}
	}
	first, err := resolve.Files(f, noPreset)
	if err != nil || len(first.Entries) != 10000 || len(first.Links) != 1 {
		t.Fatalf("%d entries, %d links, %v", len(first.Entries), len(first.Links), err)
	}
	for i := 1; i < len(first.Entries); i++ {
		if pathrule.TreeOrder(first.Entries[i-1].Path, first.Entries[i].Path) >= 0 {
			t.Fatalf("%s after %s", first.Entries[i].Path, first.Entries[i-1].Path)
		}
	}
	if again, err := resolve.Files(f, noPreset); err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("not the same the second time: %v", err)
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, n := range []int{20, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			root := fixture.Tree(b)
			var f policy.Files
			for i := range n {
				p := fmt.Sprintf("%s/d%d/e/f%d", root, i%100, i)
				if err := os.MkdirAll(p, 0o755); err != nil {
					b.Fatal(err)
				}
				f.Read = append(f.Read, p)
			}
			for b.Loop() {
				if _, err := resolve.Files(f, noPreset); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzResolve compares what paths and links lead to with what the kernel says.
func FuzzResolve(f *testing.F) {
	f.Add("b", "a/../l", "l/x")
	f.Add("../d/./b//", "m", "l/../m")
	f.Fuzz(func(t *testing.T, one, two, p string) {
		if len(one)+len(two)+len(p) > 200 || strings.Contains(one+two+p, "\x00") || one == "" || two == "" {
			return
		}
		root := fixture.Tree(t, "d/b/x", "d/a/")
		for name, target := range map[string]string{"l": one, "m": two} {
			if strings.HasPrefix(target, "/") || strings.Count(target, "..") > 2 {
				return
			}
			if err := os.Symlink(target, filepath.Join(root, "d", name)); err != nil {
				return
			}
		}
		p = filepath.Join(root, "d", strings.ReplaceAll(p, "..", ""))
		if problem, _ := pathrule.Check(p, pathrule.Read); problem != "" {
			return
		}
		want, wantErr := filepath.EvalSymlinks(p)
		_, statErr := os.Stat(p)
		got := resolve.New().Find(p)
		if (got.Err == nil) != (statErr == nil) || got.Err == nil && wantErr == nil && got.Path != want {
			t.Errorf("l -> %q, m -> %q, %s: got %s, %v; want %s, %v", one, two, p, got.Path, got.Err, want, statErr)
		}
	})
}
