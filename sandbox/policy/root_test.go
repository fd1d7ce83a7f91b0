package policy

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

func TestLayoutsThatCannotBe(t *testing.T) {
	one := func(e rootfs.Entry) Policy { return Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{e}}} }
	with := func(n rootfs.Namespaces, e ...rootfs.Entry) Policy {
		return Policy{Root: &rootfs.Layout{Entries: append([]rootfs.Entry{}, e...), Namespaces: n}}
	}
	tests := []struct {
		name  string
		p     Policy
		field string
	}{
		{"an entry that is nil", one(nil), "Root.Entries[0]"},
		{"no place", one(rootfs.Dir{}), "Root.Entries[0].At"},
		{"a place that is not absolute", one(rootfs.Dir{At: "a"}), "Root.Entries[0].At"},
		{"a place that is not clean", one(rootfs.Tmpfs{At: "/a/../b"}), "Root.Entries[0].At"},
		{"a NUL", one(rootfs.Dir{At: "/a\x00b"}), "Root.Entries[0].At"},
		{"a long path", one(rootfs.Dir{At: strings.Repeat("/a", 2049)}), "Root.Entries[0].At"},
		{"a long name", one(rootfs.Dir{At: "/" + strings.Repeat("a", 256)}), "Root.Entries[0].At"},
		{"a bind of nothing", one(rootfs.Bind{At: "/a"}), "Root.Entries[0].Source"},
		{"a bind of two things", one(rootfs.Bind{At: "/a", Source: "/a", File: os.Stdin}), "Root.Entries[0].File"},
		{"a mode of a kind of file", one(rootfs.Dir{At: "/a", Mode: fs.ModeDir | 0o755}), "Root.Entries[0].Mode"},
		{"a file in place of the root", one(rootfs.File{At: "/"}), "Root.Entries[0].At"},
		{"data in place of the root", one(rootfs.DataBind{At: "/"}), "Root.Entries[0].At"},
		{"too much data", one(rootfs.DataBind{At: "/a", Data: strings.Repeat("x", 64<<20+1)}), "Root.Entries[0].Data"},
		{"a link to nothing", one(rootfs.Symlink{At: "/a"}), "Root.Entries[0].Target"},
		{"a /proc in place of the root", one(rootfs.Proc{At: "/"}), "Root.Entries[0].At"},
		{"a console that is not absolute", one(rootfs.Dev{At: "/dev", Console: "pts/0"}), "Root.Entries[0].Console"},
		{"too large a tmpfs", one(rootfs.Tmpfs{At: "/a", Bytes: 1 << 63}), "Root.Entries[0].Bytes"},
		{"an overlay of nothing", one(rootfs.TmpOverlay{At: "/a"}), "Root.Entries[0].Layers"},
		{"a read-only overlay of one layer", one(rootfs.ReadOnlyOverlay{At: "/a", Layers: []string{"/a"}}), "Root.Entries[0].Layers"},
		{"an overlay without a place to write", one(rootfs.Overlay{At: "/a", Layers: []string{"/a"}, Work: "/w"}), "Root.Entries[0].Upper"},
		{"a layer that is not clean", one(rootfs.TmpOverlay{At: "/a", Layers: []string{"/a", "b"}}), "Root.Entries[0].Layers[1]"},
		{"file rules beside it", Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{}}, Files: Files{Read: []string{"/usr"}}}, "Files"},
		{"a lock that is not absolute", Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{}, Locks: []string{"a"}}}, "Root.Locks[0]"},
		{"a capability past the last", Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{}, Privileges: rootfs.Privileges{Capabilities: []rootfs.Capability{64}}}}, "Root.Privileges.Capabilities[0]"},
		{"a user namespace both shared and joined", with(rootfs.Namespaces{ShareUser: true, User: os.Stdin}), "Root.Namespaces.User"},
		{"ids in the harness's user namespace", with(rootfs.Namespaces{ShareUser: true, As: &rootfs.IDs{}}), "Root.Namespaces.As"},
		{"a negative id", with(rootfs.Namespaces{As: &rootfs.IDs{UID: -1}}), "Root.Namespaces.As"},
		{"an id past the last", with(rootfs.Namespaces{As: &rootfs.IDs{GID: 1 << 31}}), "Root.Namespaces.As"},
		{"maps for a namespace that was joined", with(rootfs.Namespaces{User: os.Stdin, MappedOutside: true}), "Root.Namespaces.MappedOutside"},
		{"maps from outside for two levels", with(rootfs.Namespaces{MappedOutside: true, NoUsers: true}), "Root.Namespaces.NoUsers"},
		{"no further level, of one that is not there", with(rootfs.Namespaces{ShareUser: true, NoUsers: true}), "Root.Namespaces.NoUsers"},
		{"no further level, of one alone", with(rootfs.Namespaces{OneLevel: true, NoUsers: true}), "Root.Namespaces.NoUsers"},
		{"terminals in one level", with(rootfs.Namespaces{OneLevel: true, As: &rootfs.IDs{UID: 7}}, rootfs.Dev{At: "/dev"}), "Root.Namespaces.OneLevel"},
		{"a name for the harness's host", with(rootfs.Namespaces{ShareUTS: true, Hostname: "a"}), "Root.Namespaces.Hostname"},
		{"a long host name", with(rootfs.Namespaces{Hostname: strings.Repeat("a", 65)}), "Root.Namespaces.Hostname"},
		{"process 1 of nothing", with(rootfs.Namespaces{AsPID1: true, SharePID: true}), "Root.Namespaces.AsPID1"},
		{"process 1 with locks", Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{}, Namespaces: rootfs.Namespaces{AsPID1: true}, Locks: []string{"/a"}}}, "Root.Namespaces.AsPID1"},
		{"process 1 with protected names", with(rootfs.Namespaces{AsPID1: true}, rootfs.Bind{Source: "/a", At: "/a", Write: true}), "Root.Namespaces.AsPID1"},
	}
	for _, test := range tests {
		var bad *PolicyError
		if err := test.p.Validate(); !errors.As(err, &bad) || bad.Field != test.field || bad.Problem == "" {
			t.Errorf("%s: %v, want %s", test.name, err, test.field)
		}
	}
}

func TestLayoutsThatCanBe(t *testing.T) {
	for _, p := range []Policy{
		{Root: &rootfs.Layout{}},
		{Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Dev{At: "/dev"}}, Namespaces: rootfs.Namespaces{OneLevel: true, As: &rootfs.IDs{}}}},
		{Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Bind{Source: "/a", At: "/a"}}, Namespaces: rootfs.Namespaces{AsPID1: true}}},
		{Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Dir{At: "/a", Mode: rootfs.NoAccess}, rootfs.Chmod{At: "/a", Mode: 0o777 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky}}}, Files: Files{Protect: Protect{Off: true}}},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestModesAreTheKernels(t *testing.T) {
	for mode, want := range map[fs.FileMode]uint32{0: 0o755, rootfs.NoAccess: 0, 0o640: 0o640, 0o777 | fs.ModeSticky: 0o1777, fs.ModeSetuid: 0o4000, 0o1 | fs.ModeSetgid: 0o2001} {
		if got := rootfs.ModeBits(mode, 0o755); got != want {
			t.Errorf("%v: %#o, want %#o", mode, got, want)
		}
	}
}

func TestCapabilitiesHaveNames(t *testing.T) {
	for name, want := range map[string]rootfs.Capability{"CAP_CHOWN": 0, "cap_net_admin": 12, "SYS_PTRACE": 19, "CAP_CHECKPOINT_RESTORE": 40} {
		if got, err := rootfs.ParseCapability(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := rootfs.ParseCapability("CAP_NONE"); err == nil {
		t.Error("CAP_NONE is one")
	}
	if rootfs.Capability(12).String() != "CAP_NET_ADMIN" || rootfs.Capability(41).String() != "CAP_41" {
		t.Error(rootfs.Capability(12), rootfs.Capability(41))
	}
}
