package hosts

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A dockerProfile is what of Docker's format its default profile has
// (docs.docker.com/engine/security/seccomp, and seccomp.go of the module).
type dockerProfile struct {
	DefaultErrnoRet uint16
	Syscalls        []struct {
		Names    []string
		Action   string
		ErrnoRet uint16
		Args     []struct {
			Index uint8
			Value uint64
			Two   uint64 `json:"valueTwo"`
			Op    string
		}
		Includes, Excludes struct{ Caps, Arches []string }
	}
}

// dockerCaps are the capabilities that Docker leaves root without options and that its profile asks about.
var dockerCaps = []string{"CAP_SYS_CHROOT"}

// filterOf is the profile as this package's filter, for a container without options.
func filterOf(t *testing.T, text []byte) seccomp.Filter {
	t.Helper()
	var p dockerProfile
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	ops := map[string]seccomp.Op{"SCMP_CMP_EQ": seccomp.Equal, "SCMP_CMP_LT": seccomp.Less, "SCMP_CMP_GT": seccomp.Greater, "SCMP_CMP_MASKED_EQ": seccomp.MaskedEqual}
	f := seccomp.Filter{Default: seccomp.Errno(p.DefaultErrnoRet), Unknown: seccomp.Errno(seccomp.ENOSYS)}
	var always, refusals []seccomp.Rule // after the rules that look at arguments: the first that matches decides
	for _, g := range p.Syscalls {
		holds := func(c string) bool { return slices.Contains(dockerCaps, c) }
		if len(g.Includes.Caps) > 0 && !slices.ContainsFunc(g.Includes.Caps, holds) || slices.ContainsFunc(g.Excludes.Caps, holds) ||
			len(g.Includes.Arches) > 0 && !slices.Contains(g.Includes.Arches, runtime.GOARCH) || slices.Contains(g.Excludes.Arches, runtime.GOARCH) {
			continue
		}
		rule := seccomp.Rule{Action: seccomp.Allow}
		for _, a := range g.Args {
			op, known := ops[a.Op]
			if !known {
				t.Fatalf("the operator %q", a.Op)
			}
			arg := seccomp.Arg{Index: a.Index, Op: op, Value: a.Value}
			if op == seccomp.MaskedEqual {
				arg.Mask, arg.Value = a.Value, a.Two
			}
			rule.Args = append(rule.Args, arg)
		}
		for _, name := range g.Names {
			if (seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{name}}}}).Validate() == nil { // one that no architecture here has is passed over
				rule.Names = append(rule.Names, name)
			}
		}
		switch {
		case len(rule.Names) == 0:
		case g.Action == "SCMP_ACT_ERRNO":
			rule.Action = seccomp.Errno(g.ErrnoRet)
			refusals = append(refusals, rule)
		case rule.Args == nil:
			always = append(always, rule)
		default:
			f.Rules = append(f.Rules, rule)
		}
	}
	f.Rules = slices.Concat(f.Rules, always, refusals)
	return f
}

// under runs body in a child under a profile.
func under(t *testing.T, as kerneltest.User, profile []byte, body func(t *testing.T)) {
	kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr, kerneltest.LandlockABI(1))
		arch, err := seccomp.Native()
		if err != nil {
			t.Fatal(err)
		}
		program, err := filterOf(t, profile).Compile(arch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.Load(seccomp.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		body(t)
	})
}

// bindsInside has the test binary bind a port inside, for which the supervisor takes pidfd_getfd(2).
const bindsInside = "hosts.binds"

func init() {
	kerneltest.Programs[bindsInside] = func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		l.Close()
		if err := os.WriteFile("written", nil, 0o644); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
}

// defaultSandbox runs the program in the default sandbox: "": every bound was held and it worked.
func defaultSandbox(t *testing.T) string {
	dir := filepath.Join(os.Getenv("HOME"), "ws")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := sandbox.Workspace(dir)
	p.Files.Read = append(p.Files.Read, exe)
	s, err := sandbox.New(p)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		return "refused"
	}
	defer s.Close()
	c := s.Command(exe)
	c.Args[0] = bindsInside
	if out, err := c.CombinedOutput(); err != nil {
		return string(out) + err.Error()
	}
	if r := c.Report(); !r.Held() {
		return r.String()
	}
	return ""
}

// TestKernelTheDockerProfileIsEnough: under Docker's profile the default sandbox is refused, and under docker-seccomp.json
// every bound is held and a tool can bind a port. (That /proc is whole, the other option, is so here.)
func TestKernelTheDockerProfileIsEnough(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		for _, test := range []struct {
			name  string
			calls []string
			want  string
		}{{"Docker's", nil, "refused"}, {"docker-seccomp.json", namespaceCalls, ""}} {
			t.Run(test.name, func(t *testing.T) {
				under(t, as, extended(t, test.calls), func(t *testing.T) {
					if got := defaultSandbox(t); got != test.want {
						t.Errorf("%q", got)
					}
				})
			})
		}
	})
}

// TestKernelEachCallOfTheDockerProfileIsNeeded: without any one of the calls a bound is not held, or a tool does not work. It is run by
// hand (HOLDFAST_DOCKER_CALLS=1 go test ./docs/hosts) when the list is changed: the library may come to do without a call.
func TestKernelEachCallOfTheDockerProfileIsNeeded(t *testing.T) {
	if os.Getenv("HOLDFAST_DOCKER_CALLS") == "" {
		t.Skip("HOLDFAST_DOCKER_CALLS is not set")
	}
	for _, call := range namespaceCalls {
		t.Run(call, func(t *testing.T) {
			if call == "sethostname" {
				t.Skip("a Policy.Root with a Hostname alone needs it")
			}
			rest := slices.DeleteFunc(slices.Clone(namespaceCalls), func(c string) bool { return c == call })
			under(t, kerneltest.Ordinary, extended(t, rest), func(t *testing.T) {
				if got := defaultSandbox(t); got == "" {
					t.Errorf("nothing is missing without %s", call)
				}
			})
		})
	}
}
