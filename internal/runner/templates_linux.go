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

	made sync.Map // stage.Identity -> *stage.Template
}

// Template returns the stage's template for a user.
func (s *Sandbox) Template(id stage.Identity) (*stage.Template, error) {
	if t, ok := s.Templates.made.Load(id); ok {
		return t.(*stage.Template), nil
	}
	p := s.Plan
	if drop := s.Templates.Dropped; drop != "" {
		p = p.Without(drop)
	}
	t, err := stage.Compile(p, id)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s.Templates.made.Store(id, t)
	return t, nil
}
