package sbpl

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// beActor is the argv[0] as which this test binary tries everything it is told.
const beActor = "sbpl-actor"

func TestMain(m *testing.M) {
	if os.Args[0] == beActor {
		os.Exit(actor(os.Args[1:]))
	}
	kerneltest.Main(m, kerneltest.HasUserNamespaces)
}
