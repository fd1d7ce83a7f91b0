package sandbox_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// ownMain is the argv[0] of commands that must not reach this program's own
// main, and ownMainRan is what it says when one does.
const (
	ownMain    = "holdfast-own-main"
	ownMainRan = "the harness's own main ran"
)

// helpers are programs that this test binary is when it is executed under their
// name.
var helpers = map[string]func(){}

func TestMain(m *testing.M) {
	if os.Args[0] == ownMain {
		fmt.Println(ownMainRan)
		os.Exit(0)
	}
	if helper := helpers[os.Args[0]]; helper != nil {
		helper()
		os.Exit(0)
	}
	kerneltest.Main(m)
}
