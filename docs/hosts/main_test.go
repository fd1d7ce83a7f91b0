package hosts

import (
	"flag"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

var update = flag.Bool("update", false, "write docker-seccomp.json anew")

func TestMain(m *testing.M) { kerneltest.Main(m) }
