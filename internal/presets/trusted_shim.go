package presets

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

func (b *Builder) holds(p string) bool { return !b.Distrusts(p) }

func (b *Builder) trustedProgram(name string) (string, bool) {
	for _, dir := range splitList(b.env("PATH")) {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil && pathrule.WithinAny(p, []string{"/usr/bin", "/usr/lib", "/bin"}) {
			if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
				return p, true
			}
		}
	}
	return "", false
}

func runProgram(program string, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = "/", env
	return cmd.Output()
}
