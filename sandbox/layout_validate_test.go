package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestLayoutsThatCannotBe(t *testing.T) {
	one := func(e Entry) Policy { return Policy{Layout: []Entry{e}} }
	with := func(n Namespaces, e ...Entry) Policy {
		return Policy{Layout: append([]Entry{}, e...), Namespaces: n}
	}
	tests := []struct {
		name  string
		p     Policy
		field string
	}{
		{"an entry that is nil", one(nil), "Layout[0]"},
		{"no place", one(Dir{}), "Layout[0].At"},
		{"a place that is not absolute", one(Dir{At: "a"}), "Layout[0].At"},
		{"a place that is not clean", one(Tmpfs{At: "/a/../b"}), "Layout[0].At"},
		{"a NUL", one(Dir{At: "/a\x00b"}), "Layout[0].At"},
		{"a long path", one(Dir{At: strings.Repeat("/a", 2049)}), "Layout[0].At"},
		{"a long name", one(Dir{At: "/" + strings.Repeat("a", 256)}), "Layout[0].At"},
		{"a bind of nothing", one(Bind{At: "/a"}), "Layout[0].Source"},
		{"a bind of two things", one(Bind{At: "/a", Source: "/a", File: os.Stdin}), "Layout[0].File"},
		{"a mode of a kind of file", one(Dir{At: "/a", Mode: fs.ModeDir | 0o755}), "Layout[0].Mode"},
		{"a file in place of the root", one(File{Path: "/"}), "Layout[0].Path"},
		{"data in place of the root", one(DataBind{At: "/"}), "Layout[0].At"},
		{"too much data", one(DataBind{At: "/a", Data: strings.Repeat("x", maxLayoutData+1)}), "Layout[0].Data"},
		{"a link to nothing", one(Symlink{At: "/a"}), "Layout[0].Target"},
		{"a /proc in place of the root", one(Proc{At: "/"}), "Layout[0].At"},
		{"a console that is not absolute", one(Dev{At: "/dev", Console: "pts/0"}), "Layout[0].Console"},
		{"too large a tmpfs", one(Tmpfs{At: "/a", Bytes: 1 << 63}), "Layout[0].Bytes"},
		{"an overlay of nothing", one(TmpOverlay{At: "/a"}), "Layout[0].Layers"},
		{"a read-only overlay of one layer", one(ReadOnlyOverlay{At: "/a", Layers: []string{"/a"}}), "Layout[0].Layers"},
		{"an overlay without a place to write", one(Overlay{At: "/a", Layers: []string{"/a"}, Work: "/w"}), "Layout[0].Upper"},
		{"a layer that is not clean", one(TmpOverlay{At: "/a", Layers: []string{"/a", "b"}}), "Layout[0].Layers[1]"},
		{"file rules beside it", Policy{Layout: []Entry{}, Files: Files{Read: []string{"/usr"}}}, "Files"},
		{"a lock that is not absolute", Policy{Layout: []Entry{}, Locks: []string{"a"}}, "Locks[0]"},
		{"a capability past the last", Policy{Layout: []Entry{}, Privileges: Privileges{Capabilities: []Capability{64}}}, "Privileges.Capabilities[0]"},
		{"namespaces without a layout", Policy{Namespaces: Namespaces{ShareIPC: true}}, "Namespaces"},
		{"privileges without a layout", Policy{Privileges: Privileges{All: true}}, "Privileges"},
		{"locks without a layout", Policy{Locks: []string{"/a"}}, "Locks"},
		{"nesting without a layout", Policy{Nest: true}, "Nest"},
		{"a user namespace both shared and joined", with(Namespaces{ShareUser: true, User: os.Stdin}), "Namespaces.User"},
		{"ids in the harness's user namespace", with(Namespaces{ShareUser: true, As: &IDs{}}), "Namespaces.As"},
		{"a negative id", with(Namespaces{As: &IDs{UID: -1}}), "Namespaces.As"},
		{"an id past the last", with(Namespaces{As: &IDs{GID: 1 << 31}}), "Namespaces.As"},
		{"maps for a namespace that was joined", with(Namespaces{User: os.Stdin, MappedOutside: true}), "Namespaces.MappedOutside"},
		{"maps from outside for two levels", with(Namespaces{MappedOutside: true, NoUsers: true}), "Namespaces.NoUsers"},
		{"no further level, of one that is not there", with(Namespaces{ShareUser: true, NoUsers: true}), "Namespaces.NoUsers"},
		{"no further level, of one alone", with(Namespaces{OneLevel: true, NoUsers: true}), "Namespaces.NoUsers"},
		{"terminals in one level", with(Namespaces{OneLevel: true, As: &IDs{UID: 7}}, Dev{At: "/dev"}), "Namespaces.OneLevel"},
		{"a name for the harness's host", with(Namespaces{ShareUTS: true, Hostname: "a"}), "Namespaces.Hostname"},
		{"a long host name", with(Namespaces{Hostname: strings.Repeat("a", 65)}), "Namespaces.Hostname"},
		{"process 1 of nothing", with(Namespaces{AsPID1: true, SharePID: true}), "Namespaces.AsPID1"},
		{"process 1 with locks", Policy{Layout: []Entry{}, Namespaces: Namespaces{AsPID1: true}, Locks: []string{"/a"}}, "Namespaces.AsPID1"},
		{"process 1 with protected names", with(Namespaces{AsPID1: true}, Bind{Source: "/a", At: "/a", Write: true}), "Namespaces.AsPID1"},
	}
	for _, test := range tests {
		var bad *PolicyError
		if err := test.p.validate(); !errors.As(err, &bad) || bad.Field != test.field || bad.Problem == "" {
			t.Errorf("%s: %v, want %s", test.name, err, test.field)
		}
	}
}

func TestLayoutsThatCanBe(t *testing.T) {
	for _, p := range []Policy{
		{Layout: []Entry{}},
		{Layout: []Entry{Dev{At: "/dev"}}, Namespaces: Namespaces{OneLevel: true, As: &IDs{}}},
		{Layout: []Entry{Bind{Source: "/a", At: "/a"}}, Namespaces: Namespaces{AsPID1: true}},
		{Layout: []Entry{Dir{At: "/a", Mode: NoAccess}, Chmod{At: "/a", Mode: 0o777 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky}}, Files: Files{Protect: Protect{Off: true}}},
	} {
		if err := p.validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestModesAreTheKernels(t *testing.T) {
	for mode, want := range map[fs.FileMode]uint32{0: 0o755, NoAccess: 0, 0o640: 0o640, 0o777 | fs.ModeSticky: 0o1777, fs.ModeSetuid: 0o4000, 0o1 | fs.ModeSetgid: 0o2001} {
		if got := modeOf(mode, 0o755); got != want {
			t.Errorf("%v: %#o, want %#o", mode, got, want)
		}
	}
}

func TestCapabilitiesHaveNames(t *testing.T) {
	for name, want := range map[string]Capability{"CAP_CHOWN": 0, "cap_net_admin": 12, "SYS_PTRACE": 19, "CAP_CHECKPOINT_RESTORE": 40} {
		if got, err := ParseCapability(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := ParseCapability("CAP_NONE"); err == nil {
		t.Error("CAP_NONE is one")
	}
	if Capability(12).String() != "CAP_NET_ADMIN" || Capability(41).String() != "CAP_41" {
		t.Error(Capability(12), Capability(41))
	}
}
