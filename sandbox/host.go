package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
)

type (
	// Host is what is known of this machine; see [Probe].
	Host = host.Facts
	// Fact is one thing known of the host, with its reason and remedy.
	Fact = host.Fact

	mechanism = plan.Mechanism
)
