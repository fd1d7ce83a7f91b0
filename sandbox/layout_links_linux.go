package sandbox

import "github.com/holdfast-dev/holdfast/internal/plan"

// checkLayoutLinks refuses a source that leads through a symbolic link in a tree
// which the layout shows for writing: a tool may have put it there, to be shown its
// target by the next sandbox (as in CVE-2025-59532). Where nothing of the tree is
// protected the link is followed, as bubblewrap does.
func (p Policy) checkLayoutLinks(puts []putting) error {
	if !p.guards() {
		return nil
	}
	var trees []string
	for _, u := range puts {
		switch do := u.do.(type) {
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
	for i, e := range p.Layout {
		for _, s := range sourcesOf(e) {
			trace := newResolver()
			trace.find(s.path)
			for at := range trace.links {
				for _, tree := range trees {
					if at != tree && within(at, tree) {
						return &PolicyError{Field: indexed("Layout", i) + s.field, Value: s.path, Problem: "leads through the symbolic link " + at + ", which a tool can change", Remedy: "name the target"}
					}
				}
			}
		}
	}
	return nil
}

// A layoutSource is a path of the host that an entry names.
type layoutSource struct{ field, path string }

func sourcesOf(e Entry) (list []layoutSource) {
	layers := func(paths []string) {
		for i, p := range paths {
			list = append(list, layoutSource{"." + indexed("Layers", i), p})
		}
	}
	switch e := e.(type) {
	case Bind:
		if e.File == nil {
			list = append(list, layoutSource{".Source", e.Source})
		}
	case Overlay:
		layers(e.Layers)
		list = append(list, layoutSource{".Upper", e.Upper}, layoutSource{".Work", e.Work})
	case TmpOverlay:
		layers(e.Layers)
	case ReadOnlyOverlay:
		layers(e.Layers)
	}
	return list
}
