package runner

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestAnOwnDirectoryThatCannotBeMade is a StartError that says which directories would do.
func TestAnOwnDirectoryThatCannotBeMade(t *testing.T) {
	for _, where := range []string{"/proc", filepath.Join(t.TempDir(), "none")} {
		d := &ownDir{named: filepath.Join(where, "holdfast-X")}
		err := d.make(policy.Policy{}, nil, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
		var e *StartError
		if !errors.As(err, &e) || !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "TMPDIR") || !strings.Contains(err.Error(), "--tmpfs /tmp") {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// TestAnOwnDirectoryHoldsWhatThePolicyHasNoOtherFor: each directory makes a start slower.
func TestAnOwnDirectoryHoldsWhatThePolicyHasNoOtherFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		files policy.Files
		want  []string
		vars  []string
	}{
		{"neither HOME nor TMPDIR is kept", policy.Files{}, []string{".config", ".config/tool", "tmp"}, []string{"HOME=", "TMPDIR=tmp", "TMUX_TMPDIR=tmp"}},
		{"TMPDIR is kept", policy.Files{Tmp: "/kept"}, []string{".config", ".config/tool"}, []string{"HOME=", "TMUX_TMPDIR=/kept"}},
		{"HOME is kept", policy.Files{Home: "/user"}, []string{"tmp"}, []string{"TMPDIR=tmp", "TMUX_TMPDIR=tmp"}},
		{"both are kept", policy.Files{Tmp: "/kept", Home: "/user"}, nil, []string{"TMUX_TMPDIR=/kept"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.files.Make = []policy.File{{Path: "/user/.config/tool", Data: "text"}}
			d := &ownDir{named: filepath.Join(t.TempDir(), "own")}
			err := d.make(policy.Policy{Files: c.files, Env: policy.Env{Set: map[string]string{"HOME": "/user"}}}, &Network{}, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			filepath.WalkDir(d.made, func(p string, _ os.DirEntry, err error) error {
				if rel, _ := filepath.Rel(d.made, p); rel != "." {
					got = append(got, rel)
				}
				return err
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("it holds %q, not %q", got, c.want)
			}
			var vars []string
			for _, v := range d.variables(&Sandbox{Policy: policy.Policy{Files: c.files}}) {
				vars = append(vars, strings.ReplaceAll(strings.ReplaceAll(v, d.made+"/", ""), d.made, ""))
			}
			if !slices.Equal(vars, c.vars) {
				t.Errorf("variables are %q, not %q", vars, c.vars)
			}
		})
	}
}

// TestAFileAtATakenNameOfHOMEIsRefused: HOME is the run's own directory, which has TMPDIR and the network's files in it. Nothing is left of that directory.
func TestAFileAtATakenNameOfHOMEIsRefused(t *testing.T) {
	trusts := &Network{files: []string{"bundle", "store"}}
	for _, c := range []struct {
		name    string
		files   policy.Files
		network *Network
		make    string
		refused bool
	}{
		{"TMPDIR itself", policy.Files{}, trusts, "tmp", true},
		{"below TMPDIR", policy.Files{}, trusts, "tmp/deep/file", false},
		{"a TMPDIR that lies elsewhere", policy.Files{Tmp: "/kept"}, trusts, "tmp", false},
		{"the bundle", policy.Files{}, trusts, compile.BundleFile, true},
		{"below Java's", policy.Files{}, trusts, compile.StoreFile + "/file", true},
		{"the bundle's name, and none is there", policy.Files{}, &Network{}, compile.BundleFile, false},
		{"the bundle's name further down", policy.Files{}, trusts, "certs/" + compile.BundleFile, false},
		{"a HOME that is kept", policy.Files{Home: "/user"}, trusts, "tmp", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.files.Make = []policy.File{{Path: "/etc/file"}, {Path: "/user/" + c.make, Data: "text"}}
			d := &ownDir{named: filepath.Join(t.TempDir(), "own")}
			err := d.make(policy.Policy{Files: c.files, Env: policy.Env{Set: map[string]string{"HOME": "/user"}}}, c.network, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
			text, _ := os.ReadFile(filepath.Join(d.named, c.make))
			if !c.refused {
				if err != nil || c.files.Home == "" && string(text) != "text" {
					t.Errorf("%v: %q", err, text)
				}
				return
			}
			var e *policy.PolicyError
			if !errors.As(err, &e) || e.Field != "Files.Make[1].Path" || e.Value != "/user/"+c.make || !strings.Contains(e.Remedy, "Files.Home") {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(d.named); err == nil {
				t.Error("the directory stays")
			}
		})
	}
}

// TestAnOwnDirectoryIsGivenAwayLast: a process of the user whose it is could put links where the harness has yet to write. A harness without privileges
// fails at the first thing that it gives to another user.
func TestAnOwnDirectoryIsGivenAwayLast(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			const other = 12345
			d := &ownDir{named: filepath.Join(os.Getenv("HOME"), "own")}
			err := d.make(policy.Policy{}, &Network{files: []string{"text"}}, stage.Identity{UID: other, GID: other})
			if as != kerneltest.Root {
				if err == nil || !strings.Contains(err.Error(), "write the trust bundle") {
					t.Errorf("%v: the directory is given away before its files are", err)
				}
				return
			}
			if errors.Is(err, unix.EINVAL) {
				t.Skip("needs user 12345 in this user namespace:", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"", compile.RunTmp, compile.BundleFile} {
				var st unix.Stat_t
				if err := unix.Lstat(filepath.Join(d.made, name), &st); err != nil || st.Uid != other || st.Gid != other {
					t.Errorf("%q is of user %d and group %d: %v", name, st.Uid, st.Gid, err)
				}
			}
		})
	})
}

// TestWhatAToolHasMadeIsRemoved: a tool fills its directory with more levels than the harness has descriptors, and takes away its permissions. What links
// lead to stays.
func TestWhatAToolHasMadeIsRemoved(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			home := os.Getenv("HOME")
			dir, outside := filepath.Join(home, "own"), filepath.Join(home, "outside")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.MkdirAll(filepath.Join(outside, "kept"), 0o755)); err != nil {
				t.Fatal(err)
			}
			if err := fixture.Litter(dir, outside, 700); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chdir("/"), unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100})); err != nil {
				t.Fatal(err)
			}
			(&ownDir{made: dir}).remove()
			if _, err := os.Lstat(dir); !errors.Is(err, unix.ENOENT) {
				t.Errorf("it is there: %v", err)
			}
			if info, err := os.Stat(filepath.Join(outside, "kept")); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("outside: %v, %v", info, err)
			}
			link := filepath.Join(home, "link")
			if err := os.Symlink(outside, link); err != nil {
				t.Fatal(err)
			}
			(&ownDir{made: link}).remove()
			if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
				t.Errorf("a link was followed: %v", err)
			}
		})
	})
}
