package errtext

import "testing"

func TestRepeated(t *testing.T) {
	seen := Repeated{}
	for _, step := range []struct{ line, want string }{
		{"/tmp is shared (namespaces: clone (1): not permitted; remedy: a flag)", "/tmp is shared (namespaces: clone (1): not permitted; remedy: a flag)"},
		{"/home (yours) is shared (namespaces: clone (1): not permitted; remedy: a flag)", "/home (yours) is shared (as above)"},
		{"names are seen (namespaces: clone (1): not permitted; remedy: another)", "names are seen (namespaces: clone (1): not permitted; remedy: another)"},
		{"that (too: clone (1): not permitted; remedy: a flag)", "that (too: clone (1): not permitted; remedy: a flag)"},
		{"as the first (namespaces: clone (1): not permitted; remedy: a flag)", "as the first (namespaces: clone (1): not permitted; remedy: a flag)"}, // another stands between
		{"one (two) and (three)", "one (two) and (three)"},
		{"two (two) and (three)", "two (two) and (three)"}, // which is no longer than what would stand for it
		{"closed) (before it opens)", "closed) (before it opens)"},
		{"closed) again (before it opens)", "closed) again (as above)"},
		{"))", "))"},
		{"(", "("},
		{"no end in parentheses", "no end in parentheses"},
		{"no end in parentheses", "no end in parentheses"},
		{"a word (in parentheses) and more", "a word (in parentheses) and more"},
		{"a word (in parentheses) and more", "a word (in parentheses) and more"},
		{"", ""},
	} {
		if got := seen.Shorten(step.line); got != step.want {
			t.Errorf("%q became %q, want %q", step.line, got, step.want)
		}
	}
}
