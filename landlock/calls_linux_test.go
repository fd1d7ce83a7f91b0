//go:build linux && (amd64 || arm64)

package landlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestAnswersOfTheKernel(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		errno  syscall.Errno
		abi    int
		says   string
		remedy string
	}{
		{"yes", 7, 0, 7, "", ""},
		{"no, and it was never built", 0, syscall.ENOSYS, 0, "has no Landlock", "CONFIG_SECURITY_LANDLOCK"},
		{"no, it was not enabled at boot", 0, syscall.EOPNOTSUPP, 0, "not enabled at boot", "lsm="},
		{"could not tell, a filter refused", 0, syscall.EPERM, 0, "could not tell", "seccomp"},
		{"could not tell, a version that cannot be", 0, 0, 0, "could not tell", "emulated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			abi, err := answer(tt.n, tt.errno)
			if abi != tt.abi || (err == nil) != (tt.says == "") {
				t.Fatalf("got %d, %v", abi, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.remedy)) {
				t.Errorf("error %q, want %q and %q", err, tt.says, tt.remedy)
			}
		})
	}
}

func TestKernelWithoutLandlockIsAnErrorEverywhere(t *testing.T) {
	for feature, says := range map[kerneltest.Feature]string{
		kerneltest.Landlock: "has no Landlock", kerneltest.LandlockAtBoot: "not enabled at boot",
	} {
		t.Run(string(feature), func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{Without: []kerneltest.Feature{feature}}, func(t *testing.T) {
				_, errABI := ABI()
				_, errErrata := FixedErrata()
				_, errBuild := Build(ScopesOnly())
				for call, err := range map[string]error{"ABI": errABI, "FixedErrata": errErrata, "Build": errBuild, "RestrictThread": RestrictThread(0, 0)} {
					if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), says) {
						t.Errorf("%s: %v", call, err)
					}
				}
			})
		})
	}
}

func TestKernelRestrictThreadRefusesWhatIsNoRuleset(t *testing.T) {
	needABI(t, 1)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		var step *StepError
		if err := RestrictThread(0, 0); !errors.As(err, &step) || step.Step != "landlock_restrict_self" || step.Err != syscall.EBADFD {
			t.Errorf("standard input: %v", err)
		}
		if err := RestrictThread(-1, 0); !errors.As(err, &step) || step.Err != syscall.EBADF {
			t.Errorf("no descriptor: %v", err)
		}
	})
}

func TestKernelARestrictedThreadGainsNoPrivileges(t *testing.T) {
	abi := needABI(t, 1)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			r, _, err := Downgrade(Ruleset{Paths: []PathRule{{"/", FSAll}}}, abi)
			must(t, err)
			f, err := Build(r)
			must(t, err)
			defer f.Close()
			must(t, RestrictThread(int(f.Fd()), 0))
			if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); set != 1 || err != nil {
				t.Errorf("no_new_privs is %d, %v", set, err)
			}
		})
	})
}

func TestKernelADescriptorOfARulesetIsClosedByExec(t *testing.T) {
	r, _, err := Downgrade(Ruleset{}, needABI(t, 1))
	must(t, err)
	f, err := Build(r)
	must(t, err)
	defer f.Close()
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 || err != nil {
		t.Errorf("descriptor flags %#x, %v", flags, err)
	}
}

// Build costs a few system calls for each path and nothing else.
func BenchmarkBuild(b *testing.B) {
	abi, err := ABI()
	if err != nil {
		b.Skip(err)
	}
	for _, n := range []int{20, 1000} {
		var r Ruleset
		for i := range n {
			dir := filepath.Join(b.TempDir(), fmt.Sprint(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				b.Fatal(err)
			}
			r.Paths = append(r.Paths, PathRule{dir, FSReadWrite})
		}
		if r, _, err = Downgrade(r, abi); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d paths", n), func(b *testing.B) {
			for b.Loop() {
				f, err := Build(r)
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}

func TestKernelSeventeenthLayerIsRefused(t *testing.T) {
	abi := needABI(t, 2) // ABI 1 allows 64
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		r, _, err := Downgrade(Ruleset{Paths: []PathRule{{"/", FSAll}}}, abi)
		must(t, err)
		f, err := Build(r)
		must(t, err)
		defer f.Close()
		for range 16 {
			must(t, RestrictThread(int(f.Fd()), 0))
		}
		var step *StepError
		if err := RestrictThread(int(f.Fd()), 0); !errors.As(err, &step) || step.Err != syscall.E2BIG {
			t.Errorf("the seventeenth layer: %v", err)
		}
	})
}

func ruleError(t *testing.T, err error) *RuleError {
	t.Helper()
	var rule *RuleError
	if !errors.As(err, &rule) {
		t.Fatalf("error %v, want a RuleError", err)
	}
	return rule
}

func TestKernelBuildAndRestrictThreadNeverDropWhatTheKernelLacks(t *testing.T) {
	abi := needABI(t, 1)
	var un *UnsupportedError
	if _, err := Build(Ruleset{}); abi < 10 && (!errors.As(err, &un) || len(un.Lost) == 0 || un.ABI != abi) {
		t.Errorf("a ruleset with UDP on ABI %d: %v", abi, err)
	}
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		if err := RestrictThread(0, TSync); abi < 8 && (!errors.As(err, &un) || un.ABI != abi) {
			t.Errorf("TSYNC on ABI %d: %v", abi, err)
		}
	})
}

func TestKernelBuildNamesThePathThatIsMissing(t *testing.T) {
	abi := needABI(t, 1)
	missing := filepath.Join(t.TempDir(), "missing")
	r, _, err := Downgrade(Ruleset{Paths: []PathRule{{"/", FSRead}, {missing, FSRead}}}, abi)
	must(t, err)
	_, err = Build(r)
	if rule := ruleError(t, err); !strings.Contains(rule.Rule, missing) || rule.Op != "open" || outcome(err) != "ENOENT" {
		t.Errorf("error %v", err)
	}
}

func TestKernelBuildRefusesARuleThatIsEmptyOnAFile(t *testing.T) {
	r, _, err := Downgrade(Ruleset{Paths: []PathRule{{"/dev/null", FSReadDir}}}, needABI(t, 1))
	must(t, err)
	_, err = Build(r)
	if rule := ruleError(t, err); rule.Err != syscall.ENOTDIR {
		t.Errorf("error %v", err)
	}
}
