package sandboxtest_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, kerneltest.HasUserNamespaces) }
