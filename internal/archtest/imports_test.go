package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// walls says, for each room, which rooms of the module its files may import.
// Tests may import the room they test, kerneltest and fixture too.
var walls = map[string][]string{
	".":                           nil,
	"examples":                    {"docs/hosts", "sandbox", "sandbox/policy", "sandbox/rootfs", "landlock", "landlock/process", "seccomp", "rlimit", "sandbox/sandboxtest", "sandbox/capture", "sandbox/sbpl"},
	"sandbox":                     {"sandbox/policy", "sandbox/rootfs", "sandbox/inside", "internal/presets", "internal/trust", "internal/verdict", "internal/compile", "internal/darwin", "internal/resolve", "internal/runner", "internal/pathrule", "internal/errtext", "internal/function", "internal/proxy", "internal/proxy/clientenv", "internal/proxy/hostrules", "internal/host", "internal/plan", "internal/stage", "internal/stage/launch", "seccomp", "rlimit"},
	"sandbox/policy":              {"sandbox/rootfs", "internal/pathrule", "internal/errtext", "internal/proxy/hostrules", "internal/plan", "internal/protected", "internal/supervisor", "seccomp", "rlimit"},
	"sandbox/inside":              {"internal/function", "internal/regularfile"},
	"sandbox/rootfs":              {"internal/pathrule", "internal/errtext", "internal/plan"},
	"internal/resolve":            {"sandbox/policy", "sandbox/rootfs", "internal/pathrule", "internal/errtext", "internal/gitobeyed", "internal/plan"},
	"internal/trust":              {"internal/resolve", "internal/pathrule"},
	"internal/presets":            {"sandbox/policy", "internal/trust", "internal/resolve", "internal/gitobeyed", "internal/pathrule", "internal/regularfile", "internal/errtext"},
	"internal/verdict":            {"sandbox/policy", "internal/resolve", "internal/pathrule", "internal/errtext", "internal/plan", "internal/protected", "internal/proxy/hostrules", "internal/supervisor"},
	"internal/compile":            {"sandbox/policy", "sandbox/rootfs", "internal/resolve", "internal/pathrule", "internal/errtext", "internal/host", "internal/plan", "internal/protected", "internal/proxy/clientenv", "internal/supervisor", "landlock", "seccomp", "rlimit"},
	"internal/darwin":             {"sandbox/policy", "internal/verdict", "internal/compile", "internal/pathrule", "internal/plan", "internal/protected", "internal/seatbelt/emit", "internal/supervisor", "rlimit"},
	"internal/runner":             {"sandbox/policy", "internal/callback", "internal/compile", "internal/darwin", "internal/function", "internal/host", "internal/output", "internal/resolve", "internal/pathrule", "internal/regularfile", "internal/errtext", "internal/proxy", "internal/proxy/agent", "internal/proxy/clientenv", "internal/proxy/hostrules", "internal/plan", "internal/seatbelt/emit", "internal/stage", "internal/stage/launch", "internal/stage/wire", "internal/supervisor", "rlimit"},
	"internal/pathrule":           {"internal/errtext"},
	"internal/fixture":            {"sandbox/policy", "internal/host", "internal/pathrule", "internal/plan", "internal/resolve"},
	"internal/errtext":            nil,
	"internal/function":           {"sandbox/policy"},
	"internal/callback":           {"sandbox/policy"},
	"internal/output":             {"sandbox/policy"},
	"sandbox/sandboxtest":         {"sandbox", "sandbox/policy"},
	"sandbox/capture":             {"sandbox", "sandbox/policy"}, // only programs import it: it links a network stack
	"sandbox/sbpl":                {"sandbox", "sandbox/policy", "sandbox/rootfs", "internal/pathrule", "internal/seatbelt", "seccomp"},
	"internal/stage":              {"internal/host", "internal/plan", "internal/protected", "internal/stage/child", "internal/stage/launch", "internal/supervisor", "internal/stage/wire", "landlock", "rlimit"},
	"internal/stage/child":        {"internal/supervisor", "internal/stage/wire", "internal/sys"},
	"internal/stage/launch":       {"internal/stage/child", "internal/stage/wire"},
	"internal/supervisor":         {"internal/protected", "internal/supervisor/gittext", "internal/sys"},
	"internal/supervisor/gittext": nil,
	"internal/protected":          nil,
	"internal/stage/wire":         nil,
	"internal/host":               {"landlock", "internal/sys"},
	"internal/plan":               {"landlock", "seccomp", "rlimit"},
	"landlock":                    {"internal/sys"},
	"landlock/process":            {"landlock"},
	"seccomp":                     {"internal/sys"},
	"rlimit":                      {"internal/sys"},
	"internal/sys":                nil,
	"internal/proxy":              {"sandbox/policy", "internal/callback", "internal/errtext", "internal/proxy/clientenv", "internal/proxy/hostrules", "internal/proxy/redact"},
	"internal/proxy/agent":        nil,
	"internal/proxy/clientenv":    nil,
	"internal/proxy/hostrules":    nil,
	"internal/proxy/redact":       nil,
	"internal/seatbelt":           nil,
	"internal/seatbelt/emit":      nil,
	"internal/kerneltest":         nil,
	"docs/hosts":                  nil,
	"internal/gitobeyed":          {"internal/regularfile"},
	"internal/regularfile":        nil,
	"internal/gitattack":          nil,
	"internal/archtest":           nil,
	"internal/commandtest":        nil,
	"internal/tooltest":           nil,
	"internal/hosttest":           {"docs/hosts", "sandbox", "sandbox/policy", "internal/host"},
	"internal/bench":              {"rlimit", "seccomp", "sandbox", "sandbox/policy", "sandbox/rootfs", "sandbox/capture"},
}

// testWalls says what tests may import beyond that, and why.
var testWalls = map[string][]string{
	"internal/commandtest":     {"sandbox", "sandbox/policy"}, // the whole library, as its users see it
	"internal/tooltest":        {"sandbox", "sandbox/policy"},
	"docs/hosts":               {"sandbox", "seccomp", "internal/host"}, // what the files say helps is tried, and is what the library says
	"internal/gitattack":       {"sandbox"},                             // its tests run a hostile tool in one
	"internal/proxy/clientenv": {"internal/proxy", "sandbox/policy"},    // a relay connects by one
	"internal/stage":           {"seccomp"},
	"landlock/process":         {"internal/sys"},
	"sandbox":                  {"internal/seatbelt", "internal/seatbelt/emit", "sandbox/capture", "internal/supervisor", "landlock"}, // evaluates what is emitted; attacks a captured tool's network
	"internal/seatbelt/emit":   {"internal/seatbelt"},
	"internal/runner":          {"internal/protected", "seccomp"}, // rules of protected names
}

func TestImportsRunOneWay(t *testing.T) {
	for _, f := range files(t) {
		room := roomOf(f.room)
		allowed, known := walls[room]
		if !known {
			t.Errorf("%s: the room %s has no walls: say in this test what it may import", f.path, room)
			continue
		}
		for _, p := range f.imports() {
			to, ours := strings.CutPrefix(p, module+"/")
			if !ours || slices.Contains(allowed, to) {
				continue
			}
			if f.test && (to == f.room || to == "internal/kerneltest" || to == "internal/fixture" || slices.Contains(testWalls[room], to)) {
				continue
			}
			t.Errorf("%s imports %s: no door leads from %s to %s", f.path, p, room, to)
		}
	}
}

// strangers says which files may import a package from outside of the module.
var strangers = map[string]func(f *file) bool{
	"golang.org/x/sys/unix": func(f *file) bool { // not in the early hook's chain
		return f.room != "internal/stage/child" && f.room != "internal/supervisor" && f.room != "internal/supervisor/gittext" && f.room != "internal/stage/wire" || f.test
	},
	"golang.org/x/net/idna":                                func(f *file) bool { return f.room == "internal/proxy/hostrules" },
	"golang.org/x/net/http/httpguts":                       func(f *file) bool { return f.room == "internal/proxy" },
	"software.sslmate.com/src/go-pkcs12":                   func(f *file) bool { return f.room == "internal/proxy" }, // a JVM's trust store
	"golang.org/x/net/dns/dnsmessage":                      capturing,
	"gvisor.dev/gvisor/pkg/buffer":                         capturing,
	"gvisor.dev/gvisor/pkg/tcpip":                          capturing,
	"gvisor.dev/gvisor/pkg/tcpip/header":                   capturing,
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4":             capturing,
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6":             capturing,
	"gvisor.dev/gvisor/pkg/tcpip/stack":                    capturing,
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp":            capturing,
	"gvisor.dev/gvisor/pkg/waiter":                         capturing,
	"golang.org/x/crypto/ssh":                              func(f *file) bool { return f.room == "examples/netpolicy" || f.test && f.room == "sandbox" }, // a server for ssh
	"golang.org/x/net/bpf":                                 func(f *file) bool { return f.test || f.ignored },
	"github.com/landlock-lsm/go-landlock/landlock":         func(f *file) bool { return f.test || f.room == "landlock/process" },
	"github.com/elastic/go-seccomp-bpf":                    func(f *file) bool { return f.test || f.ignored },
	"github.com/elastic/go-seccomp-bpf/arch":               func(f *file) bool { return f.test || f.ignored },
	"github.com/google/go-cmp/cmp":                         func(f *file) bool { return f.test },
	"github.com/google/go-cmp/cmp/cmpopts":                 func(f *file) bool { return f.test },
	"github.com/creack/pty":                                func(f *file) bool { return f.test },
	"github.com/landlock-lsm/go-landlock/landlock/syscall": func(f *file) bool { return f.test },
}

// capturing is the room of a network stack and a DNS server: their packages are
// linked by who asks for that room, and by nobody else.
func capturing(f *file) bool { return f.room == "sandbox/capture" }

func TestLibrariesServeWhereTheyAreStrong(t *testing.T) {
	for _, f := range files(t) {
		for _, p := range f.imports() {
			if p == "C" {
				t.Errorf("%s uses cgo", f.path)
			}
			first, _, _ := strings.Cut(p, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(p, module) {
				continue
			}
			if may, known := strangers[p]; !known || !may(f) {
				t.Errorf("%s imports %s, which has no place there", f.path, p)
			}
		}
	}
}

// forbidden says which packages of the standard library a room must not import,
// and why.
var forbidden = []struct {
	in       func(room string) bool
	std, why string
}{
	{func(r string) bool {
		return r != "internal/proxy" && r != "internal/proxy/clientenv" && r != "internal/proxy/redact" && r != "examples" && r != "internal/bench" && r != "internal/hosttest"
	}, "net/http", "it belongs to the egress proxy"},
	{func(r string) bool { return r == "internal/plan" }, "os", "a plan is plain data"},
	{func(r string) bool { return r == "internal/plan" }, "syscall", "a plan is plain data"},
	{pure, "syscall", "it is plain data and decisions on it"},
}

// pure are the rooms that neither look at the host nor act on it.
func pure(room string) bool {
	return room == "sandbox/policy" || room == "sandbox/rootfs" || room == "internal/pathrule" || room == "internal/errtext" || room == "internal/verdict" || room == "internal/compile" || room == "internal/darwin"
}

// named are the types of os and net that a pure room's data may hold. It calls neither.
var named = []string{"os.File", "net.Conn", "net.PacketConn", "net.Listener"}

func TestPureRoomsUseTypesOfTheHostAlone(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !pure(f.room) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "os" || x.Name == "net") && !slices.Contains(named, x.Name+"."+sel.Sel.Name) {
				t.Errorf("%s uses %s.%s: the room is for plain data", f.path, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestStandardLibraryStaysWhereItBelongs(t *testing.T) {
	for _, f := range files(t) {
		for _, p := range f.imports() {
			for _, w := range forbidden {
				if p == w.std && w.in(roomOf(f.room)) && !f.test {
					t.Errorf("%s imports %s: %s", f.path, p, w.why)
				}
			}
			if p == "testing" && !f.test && f.room != "internal/kerneltest" && f.room != "internal/fixture" && path.Base(f.room) != "sandboxtest" {
				t.Errorf("%s imports testing, which puts flags into every program", f.path)
			}
		}
	}
}

// early is what the early hook's packages may import of the standard library:
// whatever they import is initialised before the hook runs.
var early = []string{"syscall", "unsafe", "errors"}

func TestTheEarlyHookImportsNextToNothing(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !slices.Contains([]string{"internal/stage/child", "internal/supervisor", "internal/supervisor/gittext", "internal/protected", "internal/stage/wire", "internal/sys"}, f.room) {
			continue
		}
		for _, p := range f.imports() {
			if !strings.HasPrefix(p, module) && !slices.Contains(early, p) {
				t.Errorf("%s imports %s, which would be initialised before the hook runs, in every stage", f.path, p)
			}
		}
	}
}

// unsafeRooms are where unsafe may be, with the reason. Tests may make the
// system calls that they are about wherever they are.
var unsafeRooms = map[string]string{
	"internal/sys":          "raw system calls",
	"internal/stage":        "structs as the kernel and the stage read them",
	"internal/stage/child":  "system calls without a runtime",
	"internal/function":     "the kernel tells a pointer to the file's name that was executed",
	"internal/stage/launch": "ELF headers as they lie in a file; the context of an exec.Cmd, which os/exec does not tell",
	"internal/supervisor":   "system calls without a runtime",
	"internal/kerneltest":   "filters for test children",
	"internal/hosttest":     "calls with arguments that x/sys would not make",
	"internal/host":         "seccomp(2) is asked through a pointer that x/sys has no call for",
	"seccomp":               "seccomp(2) takes a program by pointer, and x/sys has no call for it",
}

func TestUnsafeIsWhereItIsSaid(t *testing.T) {
	for _, f := range files(t) {
		if !f.test && slices.Contains(f.imports(), "unsafe") && unsafeRooms[f.room] == "" {
			t.Errorf("%s imports unsafe, and %s has no reason to", f.path, f.room)
		}
	}
}

// TestNoFieldOfAnotherPackageIsReached: reflect finds an unexported field and unsafe reads it. One file may: os/exec has no
// other way to the context of a command that a caller has made, which sandbox.Wrap needs.
func TestNoFieldOfAnotherPackageIsReached(t *testing.T) {
	const allowed = "internal/stage/launch/osexec_linux.go"
	for _, f := range files(t) {
		if both := slices.Contains(f.imports(), "reflect") && slices.Contains(f.imports(), "unsafe"); both && !f.test && f.path != allowed {
			t.Errorf("%s imports reflect and unsafe: a value that another package needs is exported there", f.path)
		}
	}
}
