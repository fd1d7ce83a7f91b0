package runner

import (
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
)

// Engine is what a sandbox has of its plan on Linux.
type Engine struct {
	Templates *Templates // sandboxes with the same plan share them
}

// Templates are a plan's, one for each user that commands have run as; nearly always one.
type Templates struct {
	Dropped plan.Mechanism // its steps are left out, behind the back of the report: a test sees it notice

	made sync.Map // templateKey -> *stage.Template
}

type templateKey struct {
	id      stage.Identity
	session bool
}

// Template returns the stage's template for a user: of a single command, or of a session and its commands.
func (s *Sandbox) Template(id stage.Identity, session bool) (*stage.Template, error) {
	key := templateKey{id, session}
	if t, ok := s.Templates.made.Load(key); ok {
		return t.(*stage.Template), nil
	}
	p := s.Plan
	if session {
		p = p.ForSession()
	}
	if drop := s.Templates.Dropped; drop != "" {
		p = p.Without(drop)
	}
	t, err := stage.Compile(p, id)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	first, _ := s.Templates.made.LoadOrStore(key, t)
	return first.(*stage.Template), nil
}
