package guard

// A Judgement is what encoded rules say of one path: what the supervisor knows
// when it decides.
type Judgement struct {
	Whole     bool // a Whole name, or something beneath one
	Config    bool // a GitConfig file
	GitFile   bool
	CommonDir bool
	Hidden    bool // a hidden name, or something beneath one
	Above     bool // an ancestor of a protected name
	Deep      bool // as Above, inside the "**" of a name
}

// Judge says what the rules, as Encode has written them, make of a canonical
// path. It is for tests of plans. ok is false if the rules or the path are
// nothing that the supervisor would look at.
func Judge(rules []byte, path string) (j Judgement, ok bool) {
	if Check(rules) != nil || len(path) >= pathRoom || path == "" || path[0] != '/' {
		return Judgement{}, false
	}
	m := &matcher{rules: rules}
	m.n = uint(copy(m.path[:], path))
	m.judge()
	has := func(bit uint32) bool { return m.hit&bit != 0 }
	return Judgement{
		Whole: has(hitWhole), Config: has(hitConfig), GitFile: has(hitGitFile), CommonDir: has(hitCommon), Hidden: has(hitHidden),
		Above: has(hitPrefix), Deep: has(hitDeep),
	}, true
}
