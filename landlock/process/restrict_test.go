package process

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/landlock"
)

// Built with the tag landlocktsync, go-landlock's best effort enforces nothing before ABI 8 and says nothing of it.
func TestAProgramThatGoLandlockCannotRestrictGetsAnError(t *testing.T) {
	for _, tt := range []struct {
		abi       int
		tsyncOnly bool
		ok        bool
	}{{1, false, true}, {7, false, true}, {8, false, true}, {1, true, false}, {7, true, false}, {8, true, true}, {11, true, true}} {
		err := usable(tt.abi, tt.tsyncOnly)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ABI %d, only by TSYNC %v: %v", tt.abi, tt.tsyncOnly, err)
		}
	}
}

func TestARulesetThatMakesNoSenseIsRefusedOnEverySystem(t *testing.T) {
	if err := Restrict(landlock.Ruleset{Paths: []landlock.PathRule{{Path: "relative", Access: landlock.FSRead}}}); err == nil {
		t.Fatal("no error")
	}
}
