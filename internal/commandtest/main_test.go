package commandtest

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// ownMain is the argv[0] of commands that must not reach this program's own
// main, and ownMainRan is what it says when one does.
const (
	ownMain    = "holdfast-own-main"
	ownMainRan = "the harness's own main ran"
)

func init() { kerneltest.Programs[ownMain] = func() { fmt.Println(ownMainRan) } }

func TestMain(m *testing.M) { kerneltest.Main(m, kerneltest.HasUserNamespaces) }
