package hosts

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
)

// TestTheFilesSayWhatTheLibrarySays: each line that New's error gives for a host is in the file for that host.
func TestTheFilesSayWhatTheLibrarySays(t *testing.T) {
	const program = "/usr/local/bin/agent"
	for name, a := range map[string]host.Around{
		"compose.yaml":     {Runtime: host.Docker, Filtered: true, Masked: true},
		"kubernetes.yaml":  {Runtime: host.Kubernetes, Filtered: true, Masked: true, Profile: "cri-containerd.apparmor.d"},
		"systemd.conf":     {Runtime: host.Systemd, Unit: "agent.service", Filtered: true},
		"apparmor-profile": {AppArmor: true, Sysctls: []string{"kernel.apparmor_restrict_unprivileged_userns=0"}, Program: program},
	} {
		text, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := host.Facts{Namespaces: host.Fact{Answer: host.No}, Around: a, Obstacle: host.Obstacle{Errno: syscall.EPERM}}
		found := false
		for _, w := range f.Ways() {
			found = found || hasLines(string(text), w.Text)
		}
		if !found {
			t.Errorf("%s has the lines of none of %q", name, f.Ways())
		}
	}
}

// hasLines reports whether each line of part is one of text, whatever its indentation.
func hasLines(text, part string) bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		lines[strings.TrimLeft(strings.TrimSpace(line), "- ")] = true
	}
	for line := range strings.Lines(part) {
		if !lines[strings.TrimLeft(strings.TrimSpace(line), "- ")] {
			return false
		}
	}
	return true
}
