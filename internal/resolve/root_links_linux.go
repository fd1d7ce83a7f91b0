package resolve

import (
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// checkRootLinks refuses a source that leads through a symbolic link in a tree
// which the root shows for writing: a tool may have put it there, to be shown its
// target by the next sandbox (as in CVE-2025-59532). Where nothing of the tree is
// protected the link is followed, as bubblewrap does.
func checkRootLinks(p policy.Policy, puts []MountEntry) error {
	if !p.GuardsRoot() {
		return nil
	}
	var trees []string
	for _, u := range puts {
		switch do := u.Action.(type) {
		case plan.PutBind:
			if do.Write && do.Dir {
				trees = append(trees, do.Source)
			}
		case plan.PutOverlay:
			if do.Upper != "" {
				trees = append(trees, do.Upper)
			}
		}
	}
	for i, e := range p.Root.Entries {
		for _, s := range sourcesOf(e) {
			trace := New()
			trace.Find(s.path)
			for at := range trace.Links {
				for _, tree := range trees {
					if at != tree && pathrule.Within(at, tree) {
						return &policy.PolicyError{Field: errtext.Indexed("Root.Entries", i) + s.field, Value: s.path, Problem: "leads through the symbolic link " + at + ", which a tool can change", Remedy: "name the target"}
					}
				}
			}
		}
	}
	return nil
}

// A namedSource is a path of the host that an entry names.
type namedSource struct{ field, path string }

func sourcesOf(e rootfs.Entry) (list []namedSource) {
	layers := func(paths []string) {
		for i, p := range paths {
			list = append(list, namedSource{"." + errtext.Indexed("Layers", i), p})
		}
	}
	switch e := e.(type) {
	case rootfs.Bind:
		if e.File == nil {
			list = append(list, namedSource{".Source", e.Source})
		}
	case rootfs.Overlay:
		layers(e.Layers)
		list = append(list, namedSource{".Upper", e.Upper}, namedSource{".Work", e.Work})
	case rootfs.TmpOverlay:
		layers(e.Layers)
	case rootfs.ReadOnlyOverlay:
		layers(e.Layers)
	}
	return list
}
