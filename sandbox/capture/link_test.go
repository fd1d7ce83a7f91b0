package capture_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestAProgramThatDoesNotNameThePackageLinksNoStack(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.Command("go"))
	const stack = "gvisor.dev/gvisor/"
	for path, want := range map[string]bool{
		"github.com/holdfast-dev/holdfast/sandbox":         false,
		"github.com/holdfast-dev/holdfast/sandbox/capture": true,
	} {
		out, err := exec.Command("go", "list", "-deps", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), stack); got != want {
			t.Errorf("%s needs %s: %t", path, stack, got)
		}
	}
}
