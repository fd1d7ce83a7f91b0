package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelAHarnessIsNotLedOutByWhatAToolHasPlanted: a tool leaves links where
// the harness expects a report and a directory for its own (CVE-2026-39861). By
// joined paths the harness follows them; by os.OpenRoot it does not.
func TestKernelAHarnessIsNotLedOutByWhatAToolHasPlanted(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			home := os.Getenv("HOME")
			ws, outside := filepath.Join(home, "ws"), filepath.Join(home, "outside")
			for _, dir := range []string{ws, outside} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			secret := filepath.Join(outside, "secret")
			if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sandbox.New(sandbox.Workspace(ws))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := s.Command("sh", "-c", `echo fine >fine && ln -s "$1/secret" report && ln -s ../outside results`, "sh", outside)
			c.Dir = ws
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}

			if text, err := os.ReadFile(filepath.Join(ws, "report")); err != nil || string(text) != "secret" {
				t.Errorf("the link leads nowhere, so that this test proves nothing: %q, %v", text, err)
			}
			root, err := os.OpenRoot(ws)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if text, err := root.ReadFile("report"); err == nil {
				t.Errorf("the harness has read %q", text)
			}
			for name, write := range map[string]func() error{
				"by a link":           func() error { return root.WriteFile("report", []byte("x"), 0o600) },
				"in a linked place":   func() error { return root.WriteFile("results/new", []byte("x"), 0o600) },
				"a link to the place": func() error { return root.Rename("fine", "results/fine") },
			} {
				if err := write(); err == nil {
					t.Errorf("the harness has written %s", name)
				}
			}
			if text, err := root.ReadFile("fine"); err != nil || strings.TrimSpace(string(text)) != "fine" {
				t.Errorf("what is no trap: %q, %v", text, err)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
				t.Errorf("outside there is %v, %v", entries, err)
			}
		})
	})
}
