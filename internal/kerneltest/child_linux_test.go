package kerneltest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestKernelChildIsItsUser(t *testing.T) {
	AsEach(t, func(t *testing.T, as User) {
		InChild(t, Child{As: as}, func(t *testing.T) {
			want, name := os.Getuid(), "nobody"
			if as == Root {
				want, name = 0, "root"
			} else if want == 0 {
				t.Error("an ordinary user is root")
			}
			r, e, s := unix.Getresuid()
			if r != want || e != want || s != want {
				t.Errorf("user ids %d %d %d", r, e, s)
			}
			groups, err := os.Getgroups()
			if err != nil || as == Ordinary && len(groups) > 0 && os.Getenv("USER") == name {
				t.Errorf("supplementary groups %v, %v", groups, err)
			}
			dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
			if dumpable != 1 || err != nil {
				t.Errorf("dumpable is %d, %v", dumpable, err)
			}
			_, err = os.ReadFile("/etc/shadow")
			if (err == nil) != (as == Root) && !errors.Is(err, fs.ErrNotExist) { // a small container may have none
				t.Errorf("reading /etc/shadow: %v", err)
			}
			if err := exec.Command(os.Args[0], "-test.run=^$").Run(); err != nil {
				t.Errorf("running this program again: %v", err)
			}
		})
	})
}

func TestKernelChildHasAHomeOfItsOwn(t *testing.T) {
	AsEach(t, func(t *testing.T, as User) {
		InChild(t, Child{As: as, Env: []string{"HOUSE=own"}}, func(t *testing.T) {
			home := os.Getenv("HOME")
			info, err := os.Stat(home)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("home %s: %v, %v", home, info, err)
			}
			if names, err := os.ReadDir(home); len(names) > 0 || err != nil {
				t.Errorf("the home holds %v, %v", names, err)
			}
			for _, dir := range []string{home, t.TempDir()} {
				if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			if !strings.HasPrefix(t.TempDir(), filepath.Dir(home)) {
				t.Errorf("temporary files are in %s", t.TempDir())
			}
			if got := os.Getenv("HOUSE"); got != "own" {
				t.Errorf("HOUSE is %q", got)
			}
		})
	})
}

func TestKernelChildsHomeIsWhereUsersLive(t *testing.T) {
	Need(t, HasUserNamespaces) // or, for root, the right to mount
	AsEach(t, func(t *testing.T, as User) {
		home := "/home/user"
		if as == Root {
			home = "/root"
		}
		before, err := os.ReadDir(topOf(home))
		if err != nil && as == Root {
			t.Fatal(err)
		}
		InChild(t, Child{As: as, Home: home}, func(t *testing.T) {
			if got := os.Getenv("HOME"); got != home {
				t.Errorf("HOME is %s", got)
			}
			if err := os.WriteFile(home+"/file", nil, 0o600); err != nil {
				t.Error(err)
			}
			if names, err := os.ReadDir(topOf(home)); len(names) != 1 || err != nil {
				t.Errorf("%s holds %v, %v", topOf(home), names, err)
			}
		})
		if after, _ := os.ReadDir(topOf(home)); len(after) != len(before) {
			t.Errorf("%s had %v outside and has %v", topOf(home), before, after)
		}
	})
}

func TestKernelChildsDirectoriesAreGoneAfterIt(t *testing.T) {
	AsEach(t, func(t *testing.T, as User) {
		_, text := judged(t, Child{As: as}, func(t *testing.T) {
			if err := os.WriteFile(os.Getenv("HOME")+"/file", nil, 0o400); err != nil {
				t.Fatal(err)
			}
			t.Logf("home=%s;", os.Getenv("HOME"))
		})
		if inside != nil {
			return
		}
		_, rest, _ := strings.Cut(text, "home=")
		home, _, found := strings.Cut(rest, ";")
		if _, err := os.Stat(filepath.Dir(home)); !found || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: %v", home, err)
		}
	})
}

func TestKernelChildRunsOnALockedThread(t *testing.T) {
	InChild(t, Child{}, func(t *testing.T) {
		before := unix.Gettid()
		for range 100 {
			done := make(chan bool)
			go func() { close(done) }()
			<-done
			runtime.Gosched()
		}
		if after := unix.Gettid(); after != before {
			t.Errorf("thread %d became %d", before, after)
		}
	})
}

func TestKernelChildHandsOnNoMarkerAndNoRecord(t *testing.T) {
	InChild(t, Child{}, func(t *testing.T) {
		if text, ok := os.LookupEnv(specEnv); ok {
			t.Errorf("%s=%s", specEnv, text)
		}
		Need(t, Command("ls"))
		out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
		if err != nil || strings.Contains(string(out), "record") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestKernelChildrenOfOneTestAreApart(t *testing.T) {
	seen := t.TempDir() // the parent's, or of a child that is not asked
	for _, name := range []string{"one", "two"} {
		InChild(t, Child{Env: []string{"SEEN=" + seen}}, func(t *testing.T) {
			path := filepath.Join(os.Getenv("SEEN"), name)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if names, err := os.ReadDir(os.Getenv("SEEN")); err != nil || name == "one" && len(names) != 1 || name == "two" && len(names) != 2 {
				t.Errorf("%v, %v", names, err)
			}
		})
	}
	names, err := os.ReadDir(seen)
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestKernelSubtestWithAnOddNameIsFound(t *testing.T) {
	for _, name := range []string{"a/b", "[x] (y) $1.50 ^*+?", "same", "same", `back\slash`, "ünï", "{2}|"} {
		t.Run(name, func(t *testing.T) {
			got, text := judged(t, Child{}, func(t *testing.T) { t.Log("here " + t.Name()) })
			if got != ok || !strings.Contains(text, "here "+t.Name()) {
				t.Errorf("verdict %d: %s", got, text)
			}
		})
	}
}

func TestRunPatternMatchesItsNameAlone(t *testing.T) {
	for _, name := range []string{"TestA", "TestA.B", "Test[A]", "Test(A)", `Test\`, "Test$"} {
		re := regexp.MustCompile(runPattern(name))
		if !re.MatchString(name) || re.MatchString(name+"x") || re.MatchString("x"+name) {
			t.Errorf("%s: %s", name, re)
		}
	}
	if got := runPattern("TestA/b c"); got != "^TestA$/^b c$" {
		t.Error(got)
	}
}
