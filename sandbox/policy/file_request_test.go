package policy

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestNeverAsked: what is hidden is never asked about, what is protected never to be written, and odd paths not at all.
func TestNeverAsked(t *testing.T) {
	f := Files{HideNames: []string{".env"}, Protect: Protect{Off: true, BuildFiles: true, Except: []string{".vscode"}}}
	for path, want := range map[string][2]bool{ // asked to read, to write
		"/srv/file": {true, true}, "/srv/.env": {false, false}, "/srv/.env/x": {false, false}, "/srv/.ENV": {false, false},
		"/home/u/.bashrc": {true, false}, "/home/u/.BASHRC": {true, false}, "/srv/x/.git/config": {true, false}, "/srv/x/.git/objects/aa": {true, false},
		"/srv/.vscode/tasks.json": {true, true}, "/srv/lefthook.yml": {true, false},
		"/srv/a\x1bb": {false, false}, "/srv/a\nb": {false, false}, "/srv/\xff": {false, false}, "relative": {false, false},
	} {
		if got := [2]bool{f.NeverAsked(path, false) == "", f.NeverAsked(path, true) == ""}; got != want {
			t.Errorf("%q: %v (%s)", path, got, f.NeverAsked(path, true))
		}
	}
	if got := (FileRequest{Path: "/srv/\x1bx", Write: true}).String(); got != `write /srv/\x1bx` {
		t.Errorf("%q", got)
	}
}

func TestDecideGoesWithWatch(t *testing.T) {
	decide := func(context.Context, FileRequest) Verdict { return Verdict{} }
	for _, test := range []struct {
		files Files
		field string
	}{
		{Files{Watch: true, Decide: decide, Patience: time.Minute}, ""},
		{Files{Decide: decide}, "Files.Decide"},
		{Files{Watch: true, Patience: time.Minute}, "Files.Patience"},
		{Files{Watch: true, Decide: decide, Patience: -1}, "Files.Patience"},
		{Files{Watch: true, Decide: decide, Patience: 1 << 62}, "Files.Patience"},
	} {
		err, bad := Policy{Files: test.files}.Validate(), (*PolicyError)(nil)
		if errors.As(err, &bad) != (test.field != "") || bad != nil && bad.Field != test.field {
			t.Errorf("%+v: %v", test.field, err)
		}
	}
}
