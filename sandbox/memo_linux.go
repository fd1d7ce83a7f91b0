package sandbox

import (
	"reflect"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
)

// mostKept and largestKept bound the memory of a memo: how many results it
// keeps, and of how many rules one may be.
const (
	mostKept    = 8
	largestKept = 2000
)

// compiled is what follows from an input and from nothing else: compile is pure,
// and so is the lowering of its plan to system calls. Sandboxes share it.
type compiled struct {
	in        compile.Input
	plan      plan.Plan
	templates *runner.Templates
}

// A memo remembers what was compiled last. The host is looked at anew each time:
// what a preset finds, where paths and links lead, which limits are in force are
// all parts of the input, and an input that differs in anything is another one.
// So nothing in it can be out of date.
type memo struct {
	mu   sync.Mutex
	kept []*compiled // last used first
}

var memory memo

// compile returns what in compiles to.
func (m *memo) compile(in compile.Input) (*compiled, error) {
	if c := m.find(in); c != nil {
		return c, nil
	}
	p, err := compile.Plan(in)
	if err != nil {
		return nil, err
	}
	c := &compiled{in: in, plan: p, templates: &runner.Templates{Dropped: dropForTest}}
	m.keep(c)
	return c, nil
}

func (m *memo) find(in compile.Input) *compiled {
	if !keepable(in) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.kept {
		if c.templates.Dropped == dropForTest && reflect.DeepEqual(c.in, in) {
			copy(m.kept[1:i+1], m.kept[:i])
			m.kept[0] = c
			return c
		}
	}
	return nil
}

func (m *memo) keep(c *compiled) {
	if !keepable(c.in) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append([]*compiled{c}, m.kept[:min(len(m.kept), mostKept-1)]...)
}

// keepable reports whether in is all that decides its plan, and not too large.
// Without namespaces compile lists directories as it goes.
func keepable(in compile.Input) bool {
	f := in.Policy.Files
	rules := len(in.Tree.Entries) + len(in.Tree.Links) + len(f.HideNames) + len(f.Protect.Add) + len(in.Policy.Syscalls.Rules)
	for _, file := range f.Make {
		rules += len(file.Data) >> 8
	}
	if in.Policy.Root != nil {
		return false // its files are open, and may be closed and be others
	}
	return in.List == nil && rules <= largestKept
}
