//go:build linux && (amd64 || arm64)

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/landlock"
)

// Each probe must be able to say no: that it was let through.
func TestProbesSayNoOnAProcessThatIsFree(t *testing.T) {
	for name, probe := range map[string]func(landlock.Ruleset) *probe{
		"list /": listRoot, "open /dev/null for writing": writeNull, "bind a TCP socket": bindAny, "connect to an abstract socket outside": reachOut,
	} {
		t.Run(name, func(t *testing.T) {
			p := probe(landlock.Ruleset{})
			if p == nil || p.act != name {
				t.Fatalf("probe %+v", p)
			}
			defer p.close()
			var check *CheckError
			if err := onThreads(4, p.check); !errors.As(err, &check) || check.Act != name || check.Err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestProbesAreNotUsedWhereTheRulesetGrantsTheAct(t *testing.T) {
	link := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		probe func(landlock.Ruleset) *probe
		r     landlock.Ruleset
	}{
		"list a granted root":               {listRoot, landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/", Access: landlock.FSRead}}}},
		"list a root granted by a link":     {listRoot, landlock.Ruleset{Paths: []landlock.PathRule{{Path: link, Access: landlock.FSRead}}}},
		"list where listing is not handled": {listRoot, landlock.Ruleset{UnhandledFS: landlock.FSReadDir}},
		"write to a granted device":         {writeNull, landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/dev/null", Access: landlock.FSWriteFile}}}},
		"write beneath a granted directory": {writeNull, landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/dev", Access: landlock.FSWriteFile}}}},
		"bind where the ephemeral range is": {bindAny, landlock.Ruleset{Ports: []landlock.PortRule{{Port: 0, Access: landlock.NetBindTCP}}}},
		"reach out where the scope is open": {reachOut, landlock.Ruleset{Unscoped: landlock.ScopeAbstractUnixSocket}},
	} {
		t.Run(name, func(t *testing.T) {
			if p := tt.probe(tt.r); p != nil {
				p.close()
				t.Errorf("probe %q", p.act)
			}
		})
	}
}
