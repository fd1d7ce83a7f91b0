package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// checkLayoutLinks refuses a source that leads through a symbolic link in a tree
// which the layout shows for writing: a tool may have put it there, to be shown its
// target by the next sandbox (as in CVE-2025-59532). Where nothing of the tree is
// protected the link is followed, as bubblewrap does.
func checkLayoutLinks(p Policy, puts []compile.MountEntry) error {
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
			trace := resolve.New()
			trace.Find(s.path)
			for at := range trace.Links {
				for _, tree := range trees {
					if at != tree && pathrule.Within(at, tree) {
						return &PolicyError{Field: errtext.Indexed("Root.Entries", i) + s.field, Value: s.path, Problem: "leads through the symbolic link " + at + ", which a tool can change", Remedy: "name the target"}
					}
				}
			}
		}
	}
	return nil
}

// A layoutSource is a path of the host that an entry names.
type layoutSource struct{ field, path string }

func sourcesOf(e rootfs.Entry) (list []layoutSource) {
	layers := func(paths []string) {
		for i, p := range paths {
			list = append(list, layoutSource{"." + errtext.Indexed("Layers", i), p})
		}
	}
	switch e := e.(type) {
	case rootfs.Bind:
		if e.File == nil {
			list = append(list, layoutSource{".Source", e.Source})
		}
	case rootfs.Overlay:
		layers(e.Layers)
		list = append(list, layoutSource{".Upper", e.Upper}, layoutSource{".Work", e.Work})
	case rootfs.TmpOverlay:
		layers(e.Layers)
	case rootfs.ReadOnlyOverlay:
		layers(e.Layers)
	}
	return list
}
