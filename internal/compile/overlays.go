package compile

import (
	"path"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

// sharedOverlay is a directory of which one overlayfs shows several copy-on-write directories; see plan.SharedOverlay. The zero
// value is none.
type sharedOverlay struct {
	around string // the directory
	own    string // what resolve.Entry.Own of those entries is
}

// shareOverlay finds the directory around the copy-on-write entries that one overlayfs can show. In it the directories between,
// and theirs, have the owners and modes that they have outside, where the upper directory of an overlayfs of an entry's own
// is the user's: so all have to be the user's own. "/" is not taken: what is around caches is a home.
func shareOverlay(entries []resolve.Entry) (s sharedOverlay) {
	n := 0
	for _, e := range entries {
		switch {
		case e.Kind != pathrule.CopyOnWrite || e.Own == "" || e.Own == e.Path || n > 0 && e.Own != s.own:
			continue
		case n == 0:
			s = sharedOverlay{path.Dir(e.Path), e.Own}
		}
		for !pathrule.Within(path.Dir(e.Path), s.around) {
			s.around = path.Dir(s.around)
		}
		n++
	}
	if n < 2 || s.around == "/" {
		return sharedOverlay{}
	}
	return s
}

// of is the directory from whose overlayfs the entry is taken; "": it has its own.
func (s sharedOverlay) of(e resolve.Entry) string {
	if s.around == "" || e.Own != s.own || e.Own == e.Path {
		return ""
	}
	return s.around
}
