package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// followers are the functions that execute a program, or that follow links on the way to a file and at its end.
var followers = map[string][]string{
	"os": {"Open", "OpenFile", "ReadFile", "ReadDir", "Stat", "Create", "CreateTemp", "WriteFile", "Mkdir", "MkdirAll", "MkdirTemp", "Chmod", "Chown", "Chtimes", "Truncate", "Remove",
		"RemoveAll", "Rename", "Symlink", "Link", "OpenRoot", "OpenInRoot", "CopyFS", "DirFS", "Chdir", "StartProcess"},
	"filepath":    {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"exec":        {"Command", "CommandContext", "LookPath", "Cmd"},
	"syscall":     {"Exec", "ForkExec", "StartProcess", "Open", "Openat", "Stat", "Access", "Chdir"},
	"unix":        {"Exec", "Open", "Openat", "Openat2", "Stat", "Access", "Chdir"},
	"regularfile": {"Open", "Read", "OpenDir"},
}

// outside says where code that runs in the harness calls followers with a path that does not stand in the source, and why
// no tool decides by a link or a program where that leads. A new call needs its line: package trust decides about what PATH, variables, links
// and settings name.
var outside = map[string]struct{ calls, why string }{
	"internal/gitobeyed/budget.go":        {"regularfile.OpenDir", "looks for what git obeys in the workspace, and grants nothing of it"},
	"internal/gitobeyed/config.go":        {"regularfile.Read", "reads a repository's configuration, to hold what it names"},
	"internal/gitobeyed/linked.go":        {"filepath.EvalSymlinks", "a repository is granted only if it names the work tree back"},
	"internal/host/around_linux.go":       {"os.ReadFile", "names that stand in the source, of procfs, sysfs and /etc"},
	"internal/presets/build.go":           {"os.ReadDir", "the home's canonical path: names alone"},
	"internal/presets/gitsettings.go":     {"regularfile.Open regularfile.Read", "files that git's settings name: copied if trust.Places holds the file that names them, and they are not secrets"},
	"internal/presets/home.go":            {"regularfile.Open", "trust.Places holds the file"},
	"internal/presets/rootonly.go":        {"regularfile.OpenDir unix.Stat", "directories of /etc, /opt and /usr/local, by names that were read there: looked at, not shown"},
	"internal/presets/toolchains.go":      {"regularfile.OpenDir", "a directory of PATH, found by links that trust.Places holds: names alone"},
	"internal/proxy/gone_linux.go":        {"os.Open", "files of procfs, by the numbers of processes"},
	"internal/proxy/trust.go":             {"os.ReadFile", "SystemBundles, which stand in the source"},
	"internal/regularfile/dir_other.go":   {"os.Open", "the callers of the package are listed"},
	"internal/regularfile/dir_unix.go":    {"os.OpenFile", "the callers of the package are listed"},
	"internal/regularfile/open_linux.go":  {"unix.Open", "the callers of the package are listed"},
	"internal/regularfile/open_other.go":  {"os.OpenFile os.Stat", "the callers of the package are listed"},
	"internal/resolve/resolve.go":         {"filepath.EvalSymlinks", "a path of the caller's policy or command, made canonical"},
	"internal/resolve/share.go":           {"os.Stat", "a path of the caller's policy or command, made canonical"},
	"internal/resolve/sockets_linux.go":   {"filepath.EvalSymlinks", "directories of sockets that are bound on the host: what is found is hidden"},
	"internal/resolve/terminals_linux.go": {"unix.Stat", "what /dev/ptmx leads to"},
	"internal/runner/agent.go":            {"os.Chmod os.Chown", "a socket in the run's own directory, which no tool can write to"},
	"internal/runner/check_linux.go":      {"os.Stat regularfile.Open", "the tool's own program and directory: looked at for the words of an error"},
	"internal/runner/children_linux.go":   {"os.ReadFile", "files of procfs, by the numbers of processes"},
	"internal/runner/discarded_linux.go":  {"unix.Openat2", "a directory of the private tmpfs: beneath it, without links, for the words of the report"},
	"internal/runner/granted_linux.go":    {"unix.Open unix.Openat2", "a granted file: without links, by its descriptor"},
	"internal/runner/network.go":          {"os.Chown os.WriteFile", "a file in the run's own directory"},
	"internal/runner/own.go":              {"filepath.EvalSymlinks os.OpenRoot", "directories of temporary files and of the policy, to keep the run's own out of them"},
	"internal/runner/own_darwin.go":       {"os.Chmod os.Chown os.Mkdir os.RemoveAll", "the run's own directory, of a name that is new"},
	"internal/runner/own_linux.go":        {"os.Chown os.Mkdir unix.Openat", "the run's own directory, of a name that is new"},
	"internal/runner/ports_linux.go":      {"os.ReadFile", "files of procfs, by the numbers of processes"},
	"internal/runner/profile_darwin.go":   {"exec.Command", "sandbox-exec, by its path in /usr/bin"},
	"internal/runner/refusals_linux.go":   {"unix.Openat2", "a new name of the tool's: looked at without links, for the words of the report"},
	"internal/runner/root_linux.go":       {"os.Open os.Stat", "the harness's own program, and PWD, compared with the working directory"},
	"internal/runner/run.go":              {"exec.Cmd exec.CommandContext", "the stage, which is this program"},
	"internal/runner/run_darwin.go":       {"os.Stat", "the tool's own program: looked at for the words of an error"},
	"internal/runner/sandbox.go":          {"exec.Cmd filepath.EvalSymlinks", "an environment, and a path of the caller's policy or command, made canonical"},
	"internal/runner/seatbelt_stage.go":   {"syscall.Exec", "sandbox-exec, by its path in /usr/bin"},
	"internal/runner/session_linux.go":    {"exec.Cmd", "the stage, which is this program"},
	"internal/runner/sockets_linux.go":    {"os.Open", "files of procfs, by the numbers of processes"},
	"internal/runner/tree_linux.go":       {"os.ReadFile", "files of procfs, by the numbers of processes"},
	"internal/stage/try_linux.go":         {"exec.Cmd", "the stage, which is this program"},
	"internal/trust/places.go":            {"filepath.EvalSymlinks", "HOME, whose user decides"},
	"internal/trust/run.go":               {"exec.CommandContext", "a program that Places.Program has found"},
	"landlock/kernel_linux.go":            {"syscall.Open", "paths of a ruleset that its caller has written"},
	"landlock/process/probe_linux.go":     {"os.Stat unix.Openat", "paths of a ruleset that its caller has written"},
	"landlock/process/restrict_linux.go":  {"os.Stat", "paths of a ruleset that its caller has written"},
	"sandbox/cmd.go":                      {"exec.Command", "finds the tool's program as os/exec does; it is executed inside"},
	"sandbox/inside/copy.go":              {"os.OpenRoot", "a directory of the caller's; nothing outside of it is reached"},
	"sandbox/inside/server_linux.go":      {"os.Mkdir os.MkdirAll os.Remove os.RemoveAll os.Rename os.Symlink unix.Open", "executed inside, within the tool's own bounds"},
	"sandbox/network_ssh_linux.go":        {"filepath.Glob os.OpenFile", "includes of the system's ssh configuration: of root's files, those that all may read and the policy shows"},
	"sandbox/sandbox_linux.go":            {"os.ReadDir", "a path of the caller's policy or command, made canonical"},
	"sandbox/sandboxtest/sandbox.go":      {"os.Chmod os.OpenRoot", "a test's temporary directory"},
	"sandbox/sbpl/host.go":                {"os.Open", "paths of the caller's profile: names alone"},
}

// TestTheHarnessFollowsAndExecutesWhereItIsSaid holds the list above against the code, in both directions.
func TestTheHarnessFollowsAndExecutesWhereItIsSaid(t *testing.T) {
	found := map[string][]string{}
	for _, f := range files(t) {
		room := roomOf(f.room)
		if f.test || f.ignored || slices.Contains([]string{"examples", "internal/hosttest", "internal/bench", "internal/kerneltest", "internal/fixture"}, room) {
			continue
		}
		note := func(n ast.Expr, args []ast.Expr) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return
			}
			from, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains(followers[from.Name], sel.Sel.Name) || len(args) > 0 && fixed(args) {
				return
			}
			if call := from.Name + "." + sel.Sel.Name; !slices.Contains(found[f.path], call) {
				found[f.path] = append(found[f.path], call)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				note(n.Fun, n.Args)
			case *ast.CompositeLit:
				if len(n.Elts) > 0 {
					note(n.Type, nil)
				}
			}
			return true
		})
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[p])
		if got := strings.Join(found[p], " "); got != outside[p].calls {
			t.Errorf("%s calls %q, and the list has %q: say why no tool decides where that leads, or ask package trust", p, got, outside[p].calls)
		}
	}
	for p, site := range outside {
		if found[p] == nil || len(site.why) < 10 {
			t.Errorf("%s: the list has a line for it, and it calls nothing of the kind, or the line has no reason", p)
		}
	}
}

// fixed reports whether the first argument that is a text is an absolute path that stands in the source, maybe with numbers to be filled in.
func fixed(args []ast.Expr) bool {
	for _, arg := range args {
		if call, ok := arg.(*ast.CallExpr); ok && len(call.Args) > 0 {
			arg = call.Args[0] // fmt.Sprintf
		}
		for sum, ok := arg.(*ast.BinaryExpr); ok; sum, ok = arg.(*ast.BinaryExpr) {
			arg = sum.X
		}
		if lit, ok := arg.(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			return err == nil && strings.HasPrefix(text, "/")
		}
	}
	return false
}
