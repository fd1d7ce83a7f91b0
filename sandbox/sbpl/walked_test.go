package sbpl

import (
	"errors"
	"testing"
)

// TestWhatCannotBeLookedAtIsNotHeld has directories that can be passed and not be
// listed, or that no expansion walks: what exists in them is not known.
func TestWhatCannotBeLookedAtIsNotHeld(t *testing.T) {
	const names = `(version 1)(deny default)(allow file-read* file-write* (subpath (param "D")))(deny file-write* (regex #"/\.env$"))`
	const inside = `(version 1)(deny default)(allow file-read* file-write* (subpath (param "D")))(deny file-write* (subpath "/ws/ro"))`
	const two = `(version 1)(deny default)(allow file-read* file-write* (subpath (param "D")))(deny file-write* (regex #"/\.env$") (regex #"^/ws/[a-z]+x$"))`
	for _, test := range []struct {
		name, rules, dir string
		closed           string
		wider            bool
	}{
		{"a name where everything can be looked at", names, "/ws", "", false},
		{"a name where something cannot be listed", names, "/ws", "/ws/ro/sub", true},
		{"a name where something else cannot be listed", names, "/ws", "/other", false},
		{"a name where nothing is looked at", names, "/usr/src", "", true},
		{"a name, and in the same rule an expression that is none", two, "/ws", "", true},
		{"fifos where everything can be looked at", inside, "/ws", "", false},
		{"fifos where something cannot be listed", inside, "/ws", "/ws/ro/sub", true},
		{"fifos where something that can be written cannot be listed", inside, "/ws", "/ws/rw", false},
	} {
		h := newFakeHost("/ws/ro/sub/file", "/ws/rw/file", "/other/file", "/usr/src/a/.env")
		h.closed = map[string]bool{test.closed: true}
		p, err := Parse("walked.sb", test.rules, map[string]string{"D": test.dir})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = p.policy(Options{Strict: true}, h)
		var wider *WiderError
		if errors.As(err, &wider) != test.wider {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
