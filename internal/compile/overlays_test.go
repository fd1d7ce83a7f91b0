package compile

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

func TestCopiesShareTheOverlayOfTheDirectoryAroundThem(t *testing.T) {
	type copies = map[string]string // path to the directory below which it is the user's own
	tests := []struct {
		name    string
		entries copies
		around  string
	}{
		{"none", nil, ""},
		{"one has its own", copies{"/home/me/.cache/go": "/home"}, ""},
		{"two of one home", copies{"/home/me/.cache/go": "/home", "/home/me/go/mod": "/home"}, "/home/me"},
		{"two of one directory", copies{"/home/me/.cache/a": "/home", "/home/me/.cache/b": "/home"}, "/home/me/.cache"},
		{"root's own home, all of whose directories are root's", copies{"/root/.cache/go": "/", "/root/go/mod": "/"}, "/root"},
		{"nothing but the root is around both", copies{"/root/.cache/go": "/", "/var/cache/x": "/"}, ""},
		{"one that is another user's has its own", copies{"/home/me/.cache/go": "/home", "/home/me/go/mod": "/home/me/go/mod"}, ""},
		{"one below a directory of another user has its own", copies{"/home/me/.cache/go": "/home", "/home/me/go/mod": "/home/me/go"}, ""},
		{"where owners are not known each has its own", copies{"/home/me/.cache/go": "", "/home/me/go/mod": ""}, ""},
		{"three, one of them elsewhere", copies{"/home/me/.cache/go": "/home", "/home/me/go/mod": "/home", "/srv/x": "/srv"}, "/home/me"},
	}
	for _, test := range tests {
		var entries []resolve.Entry
		for p, own := range test.entries {
			entries = append(entries, resolve.Entry{Path: p, Kind: pathrule.CopyOnWrite, Dir: true, Own: own})
		}
		entries = append(entries, resolve.Entry{Path: "/home/other", Kind: pathrule.Write, Dir: true, Own: "/home"})
		slices.SortFunc(entries, func(a, b resolve.Entry) int { return pathrule.TreeOrder(a.Path, b.Path) })
		if got := shareOverlay(entries).around; got != test.around {
			t.Errorf("%s: %q, want %q", test.name, got, test.around)
		}
	}
}
