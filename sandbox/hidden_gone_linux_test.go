package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestKernelHiddenPathThatIsGone: what a policy hides is removed after New, as by a checkout of another branch, and comes back. Commands run
// meanwhile, and what is hidden is hidden; where its directory has been replaced or moved away, nothing starts: it may be shown elsewhere.
func TestKernelHiddenPathThatIsGone(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		ws := t.TempDir()
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(ws+"/"+name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(os.MkdirAll(ws+"/d/sub", 0o755))
		write(".env", "SECRET")
		write("d/key", "SECRET")
		write("d/sub/x", "SECRET")
		write("d/open", "open\n")
		p := Workspace(ws)
		p.Files.Hide = append(p.Files.Hide, ws+"/.env", ws+"/d/key", ws+"/d/sub")
		s := must(New(p))
		const all = "cat .env d/key d/sub/x e/key e/sub/x 2>/dev/null; cat [de]/open; exit 0"
		check := func(when string) {
			t.Helper()
			out, err := s.Command("sh", "-c", all).CombinedOutput()
			if err != nil || string(out) != "open\n" {
				t.Errorf("%s: %q, %v", when, out, err)
			}
			n, err := s.Open(t.Context())
			if err != nil {
				t.Errorf("%s, a session: %v", when, err)
				return
			}
			defer n.Close()
			if out, err = n.Command("sh", "-c", all).CombinedOutput(); err != nil || string(out) != "open\n" {
				t.Errorf("%s, in a session: %q, %v", when, out, err)
			}
		}
		check("everything is there")
		do(os.Remove(ws + "/.env"))
		check("a file is gone")
		do(os.Remove(ws + "/d/key"))
		do(os.RemoveAll(ws + "/d/sub"))
		check("all are gone")
		write(".env", "SECRET")
		write("d/key", "SECRET")
		do(os.MkdirAll(ws+"/d/sub", 0o755))
		write("d/sub/x", "SECRET")
		check("all are back")

		refused := func(when string) {
			t.Helper()
			if out, err := s.Command("sh", "-c", all).CombinedOutput(); err == nil || strings.Contains(string(out), "SECRET") || !strings.Contains(err.Error(), "d") {
				t.Errorf("%s: %q, %v", when, out, err)
			}
			if n, err := s.Open(t.Context()); err == nil {
				n.Close()
				t.Errorf("%s: a session opens", when)
			}
		}
		do(os.Rename(ws+"/d", ws+"/e"))
		refused("the directory was moved away")
		do(os.Mkdir(ws+"/d", 0o755))
		refused("another directory is in its place")
		do(os.Remove(ws + "/d"))
		do(os.Rename(ws+"/e", ws+"/d"))
		check("the directory is back")
	})
}

// TestKernelHiddenPathIsNeverShownInARace: another moves the directory of a hidden file away and back while commands start.
func TestKernelHiddenPathIsNeverShownInARace(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		ws := t.TempDir()
		if err := os.MkdirAll(ws+"/a/d", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ws+"/a/d/key", []byte("SECRET"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := ReadOnly(ws) // where nothing is bound over the directories on the way
		p.Files.Hide = append(p.Files.Hide, ws+"/a/d/key")
		s := must(New(p))
		stop, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(ws+"/a/d", ws+"/a/e")
				time.Sleep(50 * time.Microsecond)
				os.Rename(ws+"/a/e", ws+"/a/d")
				time.Sleep(50 * time.Microsecond)
			}
		}()
		ran := 0
		for range 60 {
			out, err := s.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do cat a/d/key a/e/key; done 2>/dev/null; exit 0").CombinedOutput()
			if err == nil {
				ran++
			}
			if strings.Contains(string(out), "SECRET") {
				t.Fatal("the hidden file was read")
			}
		}
		close(stop)
		<-done
		if out, err := s.Command("sh", "-c", "cat a/d/key; ls a/d").CombinedOutput(); err == nil && strings.Contains(string(out), "SECRET") || ran == 0 {
			t.Errorf("%d of 60 commands ran; the last: %q, %v", ran, out, err)
		}
	})
}

// TestKernelReadOfACopyOnWriteDirectory: a caller names a directory that the policy shows copy-on-write, as a preset does with a build cache.
func TestKernelReadOfACopyOnWriteDirectory(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		ws, cache := t.TempDir(), t.TempDir()
		if err := os.WriteFile(cache+"/f", []byte("cached\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := Workspace(ws)
		p.Files.CopyOnWrite = append(p.Files.CopyOnWrite, cache)
		p.Files.Read = append(p.Files.Read, cache)
		out, err := must(New(p)).Command("sh", "-c", "cat "+cache+"/f; echo x >"+cache+"/g && cat "+cache+"/g").CombinedOutput()
		if err != nil || string(out) != "cached\nx\n" {
			t.Errorf("%q, %v", out, err)
		}
		if _, err := os.Stat(cache + "/g"); err == nil {
			t.Error("the host's directory was written")
		}
		p.Files.Write = append(p.Files.Write, cache)
		if _, err := New(p); err == nil {
			t.Error("Write and CopyOnWrite of one directory are no contradiction")
		}
	})
}

// TestKernelHiddenFileThatIsReplaced: programs of the host save a hidden file by a rename, as passwd(1) does /etc/shadow, while commands start.
func TestKernelHiddenFileThatIsReplaced(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		ws := t.TempDir()
		save := func() {
			if os.WriteFile(ws+"/new", []byte("SECRET"), 0o600) != nil || os.Rename(ws+"/new", ws+"/key") != nil {
				t.Error("the file cannot be replaced")
			}
		}
		save()
		p := Workspace(ws)
		p.Files.Hide = append(p.Files.Hide, ws+"/key")
		s := must(New(p))
		stop, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					save()
				}
			}
		}()
		for range kerneltest.Amount(t, 50, 150, 500) {
			if out, err := s.Command("true").CombinedOutput(); err != nil {
				t.Errorf("%q, %v", out, err)
			}
		}
		close(stop)
		<-done
		if out, err := s.Command("sh", "-c", "cat key 2>/dev/null; echo end").CombinedOutput(); err != nil || string(out) != "end\n" {
			t.Errorf("when it is not replaced: %q, %v", out, err)
		}
	})
}
