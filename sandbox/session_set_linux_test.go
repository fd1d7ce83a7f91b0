package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelASessionsEnvironmentAndDirectory are those of commands that have none of their own, behind the policy's filter.
func TestKernelASessionsEnvironmentAndDirectory(t *testing.T) {
	t.Setenv("WITHHELD_TOKEN", "of the harness")
	t.Setenv("HARNESS", "passes")
	inSession(t, func(t *testing.T, s *Session) {
		env := append(os.Environ(), "SET=by the session")
		before := s.Command("/usr/bin/env")
		before.Dir = "/"
		if err := errors.Join(s.SetEnv(env), s.SetDir("/usr")); err != nil {
			t.Fatal(err)
		}
		if out := outputOf(t, before); strings.Contains(out, "SET=") {
			t.Errorf("a command that was made before: %s", out)
		}
		variables := func(c *Cmd) []string {
			list := slices.DeleteFunc(strings.Split(outputOf(t, c), "\n"), func(v string) bool { return strings.HasPrefix(v, "PWD=") })
			slices.Sort(list)
			return list
		}
		own := s.Command("/usr/bin/env")
		own.Env = env
		got := variables(s.Command("/usr/bin/env"))
		if want := variables(own); !slices.Equal(got, want) {
			t.Errorf("the session's environment gives %q, as the command's own %q", got, want)
		}
		if !slices.Contains(got, "SET=by the session") || !slices.Contains(got, "HARNESS=passes") || strings.Contains(strings.Join(got, "\n"), "WITHHELD") {
			t.Errorf("%q", got)
		}
		own = s.Command("/usr/bin/env")
		own.Env = []string{"OWN=1"}
		if got := variables(own); slices.Contains(got, "SET=by the session") || !slices.Contains(got, "OWN=1") {
			t.Errorf("a command's own Env: %q", got)
		}
		if got := outputOf(t, s.Command("/bin/sh", "-c", "pwd -P")); got != "/usr" {
			t.Errorf("the session's directory: %q", got)
		}
		if got := outputOf(t, s.sh("pwd -P")); got != "/" {
			t.Errorf("a command's own Dir: %q", got)
		}
		if err := errors.Join(s.SetEnv(nil), s.SetDir("/etc")); err != nil {
			t.Fatal(err)
		}
		if got := outputOf(t, s.Command("/bin/sh", "-c", "pwd -P; echo $SET")); got != "/etc" {
			t.Errorf("without the environment again: %q", got)
		}
		names := func(name string) string {
			t.Helper()
			list, err := s.Files().ReadDir(name)
			if err != nil || len(list) == 0 {
				t.Errorf("%s of the session's files: %d, %v", name, len(list), err)
			}
			return fmt.Sprint(list)
		}
		for _, dir := range []string{"/etc", "/usr"} {
			if err := s.SetDir(dir); err != nil || names(".") != names(dir) {
				t.Errorf("relative names of Files begin elsewhere than in %s (%v)", dir, err)
			}
		}
		if err := s.SetDir(""); err != nil {
			t.Error(err)
		} else if list, err := s.Files().ReadDir("."); err == nil && fmt.Sprint(list) == names("/usr") { // an error: the root, without namespaces
			t.Error("without the directory relative names of Files begin there still")
		}
		for _, bad := range []error{s.SetDir("relative"), s.SetDir("/nowhere"), s.SetDir("/usr\x00"), s.SetEnv([]string{"A=\x00"})} {
			if e := (*PolicyError)(nil); !errors.As(bad, &e) || e.Remedy == "" {
				t.Errorf("%v", bad)
			}
		}
		var setting sync.WaitGroup
		for _, dir := range []string{"/usr", "/etc"} {
			setting.Go(func() {
				for range 5 {
					s.SetDir(dir)
					s.SetEnv([]string{"AT=" + dir})
					outputOf(t, s.Command("/bin/true"))
				}
			})
		}
		setting.Wait()
		s.Close()
		for _, err := range []error{s.SetDir("/usr"), s.SetEnv(nil)} {
			if over := (*policy.SessionError)(nil); !errors.As(err, &over) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}
