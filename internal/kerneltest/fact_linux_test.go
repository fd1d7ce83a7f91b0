package kerneltest

import (
	"errors"
	"strings"
	"testing"
)

func TestExcused(t *testing.T) {
	landlock := Fact{Name: "Landlock", Since: Version{5, 13}, Features: []Feature{Landlock}}
	tool := Fact{Name: "a tool", Tool: true}
	unexpected := Fact{Name: "root"}
	old, recent := Version{5, 10}, Version{6, 1}
	for name, c := range map[string]struct {
		fact Fact
		env  environment
		want bool
	}{
		"anything outside CI":                     {landlock, environment{kernel: recent}, true},
		"a kernel fact in CI":                     {landlock, environment{ci: true, kernel: recent}, false},
		"the first kernel that has it":            {landlock, environment{ci: true, kernel: Version{5, 13}}, false},
		"an older kernel":                         {landlock, environment{ci: true, kernel: old}, true},
		"a feature that was taken away":           {landlock, environment{ci: true, kernel: recent, taken: []Feature{Landlock}}, true},
		"another feature that was taken away":     {landlock, environment{ci: true, kernel: recent, taken: []Feature{Clone3}}, false},
		"a kernel fact on a machine of no tools":  {landlock, environment{ci: true, bare: true, kernel: recent}, false},
		"a tool in CI":                            {tool, environment{ci: true, kernel: recent}, false},
		"a tool on a machine of no tools":         {tool, environment{ci: true, bare: true, kernel: recent}, true},
		"a fact that is expected of no kernel":    {unexpected, environment{ci: true, kernel: recent}, true},
		"a newer major version with a low number": {landlock, environment{ci: true, kernel: Version{7, 0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excused(c.fact, c.env); got != c.want {
				t.Errorf("excused is %t", got)
			}
		})
	}
}

func TestParseRelease(t *testing.T) {
	for release, want := range map[string]Version{
		"6.1.0-56-cloud-amd64":        {6, 1},
		"6.12.117+deb12-cloud-amd64":  {6, 12},
		"6.18":                        {6, 18},
		"5.15.0-1053-aws":             {5, 15},
		"7.0-rc1":                     {7, 0},
		"4.19.128-microsoft-standard": {4, 19},
	} {
		got, err := parseRelease(release)
		if got != want || err != nil {
			t.Errorf("%s: %v, %v", release, got, err)
		}
	}
	for _, release := range []string{"", "six", "6", "6."} {
		if v, err := parseRelease(release); err == nil {
			t.Errorf("%q: %v", release, v)
		}
	}
}

func TestKernelMissingFactFailsInCI(t *testing.T) {
	c := Child{As: Ordinary, Without: []Feature{Landlock}, Env: []string{"CI=true", "CI_BARE="}}
	missing := Fact{Name: "the moon", Since: Version{2, 6}, Check: func() error { return errors.New("it is dark") }}
	for name, want := range map[string]struct {
		fact   Fact
		result outcome
		says   string
	}{
		"a fact that the kernel must have":  {missing, bad, "the moon"},
		"a fact that it has":                {HasSeccompFilter, ok, ""},
		"a fact that was taken away":        {LandlockABI(1), skip, "Landlock ABI 1"},
		"a fact that nobody expects":        {IsRoot, skip, "root"},
		"a program that is not installed":   {Command("no-such-program"), bad, "no-such-program"},
		"a fact of every ordinary user":     {IsOrdinary, ok, ""},
		"an architecture that this one not": {Architecture("vax"), skip, "vax"},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := judged(t, c, func(t *testing.T) { Need(t, want.fact) })
			if got != want.result || !strings.Contains(text, want.says) {
				t.Errorf("verdict %d: %s", got, text)
			}
		})
	}
}

// TestKernelFacts says in the log what this host is.
func TestKernelFacts(t *testing.T) {
	kernel, err := Kernel()
	if err != nil {
		t.Fatal(err)
	}
	abi, err := landlockABI()
	t.Logf("kernel %v, Landlock ABI %d (%v)", kernel, abi, err)
	for _, f := range []Fact{HasUserNamespaces, HasSeccompFilter, HasMountSetattr, IsRoot} {
		t.Logf("%s: %v", f.Name, f.Check())
	}
	for n, since := range landlockSince {
		if err == nil && kernel.AtLeast(since) && abi < n+1 {
			t.Errorf("kernel %v has Landlock ABI %d; %v is said to have brought %d", kernel, abi, since, n+1)
		}
	}
}

func TestKernelPackageWithoutMainIsToldSo(t *testing.T) {
	got, text := judged(t, Child{}, func(t *testing.T) {
		inside, entered = nil, false
		InChild(t, Child{}, func(*testing.T) {})
	})
	if inside == nil && (got != bad || !strings.Contains(text, "does not call kerneltest.Main")) {
		t.Errorf("verdict %d: %s", got, text)
	}
}

func TestKernelAllAndShortContradictEachOther(t *testing.T) {
	t.Setenv(AllEnv, "all")
	result, text := judged(t, Child{}, func(t *testing.T) { All(t) })
	want := map[bool]outcome{true: bad, false: ok}[testing.Short()]
	if result != want {
		t.Errorf("verdict %d: %s", result, text)
	}
}

func TestAmountsFollowTheVariable(t *testing.T) {
	t.Setenv(AllEnv, "")
	want := map[bool]int{true: 1, false: 2}[testing.Short()]
	if got := Amount(t, 1, 2, 3); got != want {
		t.Errorf("amount %d", got)
	}
	t.Run("all", func(t *testing.T) {
		if testing.Short() {
			t.Skip("needs a run without -short, which All contradicts")
		}
		t.Setenv(AllEnv, "all")
		if got := Amount(t, 1, 2, 3); got != 3 {
			t.Errorf("amount %d", got)
		}
	})
}
