package policy

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
)

func TestValidateNamesTheField(t *testing.T) {
	read := func(p ...string) Policy { return Policy{Files: Files{Read: p}} }
	tests := []struct {
		name   string
		policy Policy
		field  string
		err    error
	}{
		{"an empty path", read("/usr", ""), "Files.Read[1]", nil},
		{"a NUL byte in a path", read("/usr\x00/etc"), "Files.Read[0]", nil},
		{"a relative path", read("usr"), "Files.Read[0]", nil},
		{"a path that is not clean", read("/usr/../etc"), "Files.Read[0]", nil},
		{"a path with a slash at its end", read("/usr/"), "Files.Read[0]", nil},
		{"a path longer than PATH_MAX", read(strings.Repeat("/a", 3000)), "Files.Read[0]", nil},
		{"a name longer than NAME_MAX", read("/" + strings.Repeat("a", 256)), "Files.Read[0]", nil},
		{"the host's /proc", read("/proc"), "Files.Read[0]", nil},
		{"something of the host's /proc", Policy{Files: Files{Write: []string{"/proc/sys/kernel"}}}, "Files.Write[0]", nil},
		{"all of /dev", Policy{Files: Files{Write: []string{"/dev"}}}, "Files.Write[0]", nil},
		{"the host's terminals", Policy{Files: Files{Write: []string{"/dev/pts/0"}}}, "Files.Write[0]", nil},
		{"a shared directory that is not private", Policy{Files: Files{Private: []string{"/tmp"}, MayShare: []string{"/tmp", "/var/tmp"}}}, "Files.MayShare[1]", nil},
		{"a private device", Policy{Files: Files{Private: []string{"/dev/kvm"}}}, "Files.Private[0]", nil},
		{"a writable /sys", Policy{Files: Files{Write: []string{"/sys/fs/cgroup"}}}, "Files.Write[0]", nil},
		{"a hidden root", Policy{Files: Files{Hide: []string{"/"}}}, "Files.Hide[0]", nil},
		{"a private root", Policy{Files: Files{Private: []string{"/"}}}, "Files.Private[0]", nil},
		{"a root copied on write", Policy{Files: Files{CopyOnWrite: []string{"/"}}}, "Files.CopyOnWrite[0]", nil},
		{"a file at the root", Policy{Files: Files{Make: []File{{Path: "/"}}}}, "Files.Make[0].Path", nil},
		{"a setuid file", Policy{Files: Files{Make: []File{{Path: "/a", Mode: 0o755 | fs.ModeSetuid}}}}, "Files.Make[0].Mode", nil},
		{"a large file", Policy{Files: Files{Make: []File{{Path: "/a", Data: strings.Repeat("x", 2<<20)}}}}, "Files.Make[0].Data", nil},
		{"more private bytes than can be", Policy{Files: Files{PrivateBytes: 1 << 63}}, "Files.PrivateBytes", nil},
		{"too many rules", read(make65537()...), "Files", nil},
		{"a hidden name with a wildcard in its middle", Policy{Files: Files{HideNames: []string{"a*.pem"}}}, "Files.HideNames[0]", nil},
		{"a hidden name that would cover every name", Policy{Files: Files{HideNames: []string{"x", "\u00e9*"}}}, "Files.HideNames[1]", nil},
		{"a hidden name with alternatives", Policy{Files: Files{HideNames: []string{".env", ".env{,.local}"}}}, "Files.HideNames[1]", nil},
		{"a hidden name with any one character", Policy{Files: Files{HideNames: []string{".en?"}}}, "Files.HideNames[0]", nil},
		{"a hidden name with a class of characters", Policy{Files: Files{HideNames: []string{"a/.env.[l]ocal"}}}, "Files.HideNames[0]", nil},
		{"a hidden name with an escape", Policy{Files: Files{HideNames: []string{`.git\hooks`}}}, "Files.HideNames[0]", nil},
		{"a hidden name below the shell's home", Policy{Files: Files{HideNames: []string{"~/.netrc"}}}, "Files.HideNames[0]", nil},
		{"a protected name with alternatives", Policy{Files: Files{Protect: Protect{Add: []string{"{a,b}.lock"}}}}, "Files.Protect.Add[0]", nil},
		{"an exception with a pattern", Policy{Files: Files{Protect: Protect{Except: []string{".vscod?"}}}}, "Files.Protect.Except[0]", nil},
		{"a variable with alternatives", Policy{Env: Env{Pass: []string{"LC_{ALL,CTYPE}"}}}, "Env.Pass[0]", nil},
		{"a preset of the whole file system", Policy{Files: Files{Write: []string{"/"}, Hide: []string{"/etc/shadow", "/"}}}, "Files.Write[0]", nil},
		{"a preset of the whole file system to read", Policy{Files: Files{Read: []string{"/usr", "/"}, Hide: []string{"/"}}}, "Files.Read[1]", nil},
		{"an address space that holds no program", Policy{Limits: Limits{Rlimits: rlimit.Limits{AS: rlimit.At(1 << 20)}}}, "Limits.Rlimits.AS", nil},
		{"a soft address space that holds no program", Policy{Limits: Limits{Rlimits: rlimit.Limits{AS: rlimit.Between(1<<20, rlimit.Inherited)}}}, "Limits.Rlimits.AS", nil},
		{"data that holds no program", Policy{Limits: Limits{Rlimits: rlimit.Limits{Data: rlimit.At(100 << 10)}}}, "Limits.Rlimits.Data", nil},
		{"a stack that holds no program", Policy{Limits: Limits{Rlimits: rlimit.Limits{Stack: rlimit.At(8 << 10)}}}, "Limits.Rlimits.Stack", nil},
		{"an empty hidden name", Policy{Files: Files{HideNames: []string{""}}}, "Files.HideNames[0]", nil},
		{"an unknown exception", Policy{Files: Files{Protect: Protect{Except: []string{".git/hook"}}}}, "Files.Protect.Except[0]", nil},
		{"a name both added and excepted", Policy{Files: Files{Protect: Protect{Add: []string{".vscode"}, Except: []string{".vscode"}}}}, "Files.Protect.Except[0]", nil},
		{"protection off and added to", Policy{Files: Files{Protect: Protect{Add: []string{"x"}, Off: true}}}, "Files.Protect", nil},
		{"a protected name that leads up", Policy{Files: Files{Protect: Protect{Add: []string{"../x"}}}}, "Files.Protect.Add[0]", nil},
		{"a directory to start in that is relative", Policy{Dir: "project"}, "Dir", nil},
		{"a variable without a name", Policy{Env: Env{Pass: []string{""}}}, "Env.Pass[0]", nil},
		{"a pattern that is none", Policy{Env: Env{Pass: []string{"A["}}}, "Env.Pass[0]", nil},
		{"a variable with its value among the names", Policy{Env: Env{Pass: []string{"A=b"}}}, "Env.Pass[0]", nil},
		{"a name with an equals sign", Policy{Env: Env{Set: map[string]string{"A=": ""}}}, `Env.Set["A="]`, nil},
		{"a value with a NUL byte", Policy{Env: Env{Set: map[string]string{"A": "b\x00"}}}, `Env.Set["A"]`, nil},
		{"a soft limit above the hard", Policy{Limits: Limits{Rlimits: rlimit.Limits{NoFile: rlimit.Between(2, 1)}}}, "Limits.Rlimits.NoFile", nil},
		{"a limit out of range", Policy{Limits: Limits{Rlimits: rlimit.Limits{Nice: rlimit.At(41)}}}, "Limits.Rlimits.Nice", nil},
		{"a negative deadline", Policy{Limits: Limits{WallClock: -time.Second}}, "Limits.WallClock", nil},
		{"a deadline that would round to none", Policy{Limits: Limits{WallClock: time.Microsecond}}, "Limits.WallClock", nil},
		{"an unknown system call", Policy{Syscalls: seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"opennat"}, Action: seccomp.Allow}}}},
			"Syscalls.Rules[0].Names[0]", seccomp.ErrUnknownSyscall},
		{"an action that is none", Policy{Syscalls: seccomp.Filter{Default: 77}}, "Syscalls.Default", seccomp.ErrInvalid},
		{"a rule that asks a supervisor", Policy{Syscalls: seccomp.Default().With(seccomp.Rule{Names: []string{"getpid"}, Action: seccomp.Notify})}, "Syscalls.Rules[0].Action", nil},
		{"a filter that asks by default", Policy{Syscalls: seccomp.Filter{Default: seccomp.Notify}}, "Syscalls.Default", nil},
		{"a filter that asks about what it does not know", Policy{Syscalls: seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Notify}}, "Syscalls.Unknown", nil},
		{"two rules for one system call", Policy{Syscalls: seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"read"}}, {Names: []string{"read"}, Action: seccomp.Allow}}}},
			"Syscalls.Rules[1].Names[0]", seccomp.ErrUnreachable},
		{"too few descriptors to start with", Policy{Limits: Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(3)}}}, "Limits.Rlimits.NoFile", nil},
		{"a hidden name with a NUL byte", Policy{Files: Files{HideNames: []string{"a\x00"}}}, "Files.HideNames[0]", nil},
		{"an absolute hidden name", Policy{Files: Files{HideNames: []string{"/etc"}}}, "Files.HideNames[0]", nil},
		{"a hidden name longer than PATH_MAX", Policy{Files: Files{HideNames: []string{strings.Repeat("a/", 3000) + "b"}}}, "Files.HideNames[0]", nil},
		{"a list of too many hidden names", Policy{Files: Files{HideNames: numbered("n", maxNames+1)}}, "Files.HideNames", nil},
		{"two lists of too many names together", Policy{Files: Files{HideNames: numbered("h", 3000), Protect: Protect{Add: numbered("p", 3000)}}}, "Files.HideNames", nil},
		{"a protected name that is empty", Policy{Files: Files{Protect: Protect{Add: []string{"a", ""}}}}, "Files.Protect.Add[1]", nil},
		{"a variable with a NUL byte", Policy{Env: Env{Pass: []string{"A\x00"}}}, "Env.Pass[0]", nil},
		{"a value longer than execve takes", Policy{Env: Env{Set: map[string]string{"A": strings.Repeat("x", 1<<17)}}}, `Env.Set["A"]`, nil},
		{"a variable that is set and has no name", Policy{Env: Env{Set: map[string]string{"": "x"}}}, `Env.Set[""]`, nil},
		{"a relative place for a file", Policy{Files: Files{Make: []File{{Path: "a"}}}}, "Files.Make[0].Path", nil},
		{"a NUL byte in a hidden place", Policy{Files: Files{Hide: []string{"/a\x00"}}}, "Files.Hide[0]", nil},
		{"a relative private place", Policy{Files: Files{Private: []string{"tmp"}}}, "Files.Private[0]", nil},
		{"an empty place to copy", Policy{Files: Files{CopyOnWrite: []string{""}}}, "Files.CopyOnWrite[0]", nil},
		{"a path that leads up, to write", Policy{Files: Files{Write: []string{"/a/../b"}}}, "Files.Write[0]", nil},
		{"an unknown bound that may be missing", Policy{May: []Bound{"file"}}, "May[0]", nil},
		{"an unknown open bound", Policy{Open: []Bound{BoundFiles, ""}}, "Open[1]", nil},
		{"hidden names and open files", Policy{Open: []Bound{BoundFiles}, Files: Files{HideNames: []string{".env"}}}, "Open[0]", nil},
		{"protected names and open files", Policy{Open: []Bound{BoundFiles}, Files: Files{Protect: Protect{Add: []string{"x"}}}}, "Open[0]", nil},
		{"a profile and open system calls", Policy{Open: []Bound{BoundTime, BoundSyscalls}, Syscalls: seccomp.Strict()}, "Open[1]", nil},
		{"limits and open resources", Policy{Open: []Bound{BoundResources}, Limits: Limits{Rlimits: rlimit.Limits{CPU: rlimit.At(1)}}}, "Open[0]", nil},
		{"a deadline and open time", Policy{Open: []Bound{BoundTime}, Limits: Limits{WallClock: time.Second}}, "Open[0]", nil},
		{"a bound both open and wanted where it can be", Policy{Open: []Bound{BoundFiles}, May: []Bound{BoundFiles}}, "Open[0]", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.policy.Validate()
			saysWhatToDo(t, err, tt.field)
			if tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("%v does not wrap %v", err, tt.err)
			}
		})
	}
}

func make65537() []string {
	list := make([]string, 1<<16+1)
	for i := range list {
		list[i] = "/usr"
	}
	return list
}

func TestValidateTakesWhatIsSound(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
	}{
		{"the zero policy", Policy{}},
		{"the whole file system for reading", Policy{Files: Files{Read: []string{"/"}}}},
		{"a device file", Policy{Files: Files{Write: []string{"/dev/kvm"}}}},
		{"the host's /sys for reading", Policy{Files: Files{Read: []string{"/sys/devices"}}}},
		{"odd but valid bytes in a path", Policy{Files: Files{Read: []string{"/a b\n\xff"}}}},
		{"the names of environment files", Policy{Files: Files{HideNames: []string{".env", ".env.*"}}}},
		{"hidden names that begin or end in any text", Policy{Files: Files{HideNames: []string{"*.pem", "id_*", "a/*/b", "~$x (copy).doc"}}}},
		{"variables by pattern", Policy{Env: Env{Pass: []string{"LC_*", "L[AB]NG", "TZ?"}}}},
		{"as much memory as it takes to start", Policy{Limits: Limits{Rlimits: rlimit.Limits{AS: rlimit.At(leastAS), Data: rlimit.At(leastData), Stack: rlimit.At(leastStack)}}}},
		{"an exception as ProtectedNames has it", Policy{Files: Files{Protect: Protect{Except: []string{".git/hooks"}}}}},
		{"a profile of its own", Policy{Syscalls: seccomp.Strict()}},
		{"a bound named twice", Policy{May: []Bound{BoundFiles, BoundFiles}}},
		{"the longest deadline", Policy{Limits: Limits{WallClock: math.MaxInt64}}},
		{"as many descriptors as it takes to start", Policy{Limits: Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(leastFiles)}}}},
		{"a hidden name twice", Policy{Files: Files{HideNames: []string{".env", ".env"}}}},
		{"a variable that is passed and set", Policy{Env: Env{Pass: []string{"A"}, Set: map[string]string{"A": "b"}}}},
		{"a deadline", Policy{Limits: Limits{WallClock: time.Minute}}},
		{"every bound open", Policy{Open: []Bound{BoundFiles, BoundNetwork, BoundProcesses, BoundSyscalls, BoundPrivileges, BoundResources, BoundEnvironment, BoundTime}}},
		{"a profile that is off where system calls are open", Policy{Open: []Bound{BoundSyscalls}, Syscalls: seccomp.Off()}},
		{"rules of bounds that are open", Policy{Open: []Bound{BoundFiles, BoundEnvironment}, Files: Files{Read: []string{"/usr"}, Write: []string{"/srv"}, Hide: []string{"/srv/keys"}, Private: []string{"/tmp"}}, Env: Env{Pass: []string{"PATH"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.policy.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProtectedPatternsFollowThePolicy(t *testing.T) {
	all := Files{}.ProtectedPatterns()
	if len(all) != len(ProtectedNames()) || len(all) < 30 {
		t.Errorf("the zero value protects %d names of %d", len(all), len(ProtectedNames()))
	}
	f := Files{Protect: Protect{Except: []string{".vscode"}, Add: []string{"Makefile", ".idea"}}}
	got := strings.Join(f.ProtectedPatterns(), " ")
	if strings.Contains(got, ".vscode") || strings.Count(got, ".idea") != 1 || !strings.HasSuffix(got, " Makefile") {
		t.Errorf("got %s", got)
	}
	if off := (Files{Protect: Protect{Off: true}}).ProtectedPatterns(); len(off) != 0 {
		t.Errorf("Off leaves %v", off)
	}
}

func FuzzValidate(f *testing.F) {
	for _, s := range []string{"/usr", "", "a\x00b", "/../", "/dev/kvm", ".git/*", "[", "**"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		policies := []Policy{
			{Files: Files{Read: []string{s}}}, {Files: Files{Hide: []string{s}}}, {Files: Files{Make: []File{{Path: s}}}},
			{Files: Files{HideNames: []string{s}}}, {Files: Files{Protect: Protect{Add: []string{s}}}}, {Env: Env{Pass: []string{s}}},
			{Env: Env{Set: map[string]string{s: s}}}, {May: []Bound{Bound(s)}},
		}
		for _, p := range policies {
			err := p.Validate()
			if e := (*PolicyError)(nil); err != nil && (!errors.As(err, &e) || e.Field == "") {
				t.Errorf("%q: %v names no field", s, err)
			}
		}
	})
}

// saysWhatToDo wants a *PolicyError that names the field and a remedy, and says
// everything once and in a line that can be read.
func saysWhatToDo(t *testing.T, err error, field string) {
	t.Helper()
	var e *PolicyError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *PolicyError", err)
	}
	if e.Field != field {
		t.Errorf("field %q, want %q (%v)", e.Field, field, err)
	}
	if e.Problem == "" || e.Remedy == "" {
		t.Errorf("problem %q, remedy %q: %v", e.Problem, e.Remedy, err)
	}
	if e.Err != nil && strings.Contains(e.Problem, e.Err.Error()) {
		t.Errorf("it says so twice: %v", err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i)
	}
	return list
}
