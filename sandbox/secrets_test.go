package sandbox

import (
	"path"
	"testing"
)

// FuzzMatchStars holds the quick matcher against path.Match, where both mean the
// same.
func FuzzMatchStars(f *testing.F) {
	for _, pattern := range append(SecretNames(), "*", "**", "a*b*c", "*a*", "", "*ab*ab") {
		for _, name := range []string{"", "a", "AWS_KEY", "MY_TOKEN_X", "TOKEN", "abc", "aXbYc", "abab", "aab", "PATH", "ENV", "XENV", "a:_AUTHb"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		for _, r := range pattern + name {
			if r == '/' || r == '?' || r == '[' || r == '\\' {
				return
			}
		}
		want, err := path.Match(pattern, name)
		if err != nil {
			return
		}
		if got := matchStars(pattern, name); got != want {
			t.Errorf("matchStars(%q, %q) is %v; path.Match says %v", pattern, name, got, want)
		}
	})
}
