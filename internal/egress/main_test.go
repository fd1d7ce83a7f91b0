package egress

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// helpers are programs that this test binary is when it is executed under their name.
var helpers = map[string]func(){}

func TestMain(m *testing.M) {
	if helper := helpers[os.Args[0]]; helper != nil {
		helper()
		os.Exit(0)
	}
	kerneltest.Main(m)
}
