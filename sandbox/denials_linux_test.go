package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _, _, _, _ = offer(programs, "denied", tryDenied), offer(programs, "denied a lot", tryManyDenied), offer(programs, "denied in odd words", tryOddDenied),
	offer(programs, "denied and waiting", tryAndWait), offer(programs, "seek denials", seekDenials)

// A denied deed is one call of the tool's, relative to its directory, and what the report says of it.
type deniedDeed struct {
	try       func() error
	operation string // "": nothing is reported
	path, to  string
	rule      string
	remedy    string // what it begins with
	count     int    // 0: one
}

func write(name string, flags int) error {
	fd, err := unix.Open(name, flags|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	unix.Close(fd)
	return err
}

func made(name string) error { return write(name, unix.O_CREAT) }

// deniedDeeds are tried in this order.
var deniedDeeds = map[string]deniedDeed{
	"01 create a protected name, three times": {func() error { made(".bashrc"); made(".bashrc"); return made(".bashrc") }, "create", ".bashrc", "", ".bashrc", `add ".bashrc" to Files.Protect.Except`, 3},
	"02 write a protected file":               {func() error { return write(".envrc", 0) }, "open for writing", ".envrc", "", ".envrc", `add ".envrc" to`, 0},
	"03 read a hidden file":                   {func() error { _, err := os.ReadFile("d/.env"); return err }, "open for reading", "d/.env", "", ".env", `take ".env" out of Files.HideNames`, 0},
	"04 make a protected directory":           {func() error { return unix.Mkdir(".vscode", 0o755) }, "make a directory", ".vscode", "", ".vscode", `add ".vscode"`, 0},
	"05 link a directory above one":           {func() error { return unix.Symlink("d", ".lsp") }, "make a symbolic link", ".lsp", "", ".lsp/config.edn", `add ".lsp/config.edn"`, 0},
	"06 make a FIFO of a protected name":      {func() error { return unix.Mkfifo(".profile", 0o644) }, "make a node", ".profile", "", ".profile", `add ".profile"`, 0},
	"07 remove a protected file":              {func() error { return unix.Unlink(".envrc") }, "remove", ".envrc", "", ".envrc", "add", 0},
	"08 remove a protected directory":         {func() error { return unix.Rmdir(".idea") }, "remove a directory", ".idea", "", ".idea", "add", 0},
	"09 rename to a protected name":           {func() error { return unix.Rename("f", ".zshrc") }, "rename", "f", ".zshrc", ".zshrc", "add", 0},
	"10 rename a protected name":              {func() error { return unix.Rename(".envrc", "e") }, "rename", ".envrc", "e", ".envrc", "add", 0},
	"11 exchange":                             {func() error { return unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, ".envrc", unix.RENAME_EXCHANGE) }, "exchange", "f", ".envrc", ".envrc", "add", 0},
	"12 link a protected file":                {func() error { return unix.Link(".envrc", "e") }, "make a link", ".envrc", "e", ".envrc", "add", 0},
	"13 truncate":                             {func() error { return unix.Truncate(".envrc", 0) }, "truncate", ".envrc", "", ".envrc", "add", 0},
	"14 change a mode":                        {func() error { return unix.Chmod(".envrc", 0o777) }, "change the mode", ".envrc", "", ".envrc", "add", 0},
	"15 set the setuid bit":                   {func() error { return setsNoBit("f") }, "set the setuid or setgid bit", "f", "", "", "nothing does", 0},
	"16 bind a socket":                        {func() error { return bindAt(".inputrc") }, "bind a socket", ".inputrc", "", ".inputrc", "add", 0},
	"17 a hook of a git directory":            {func() error { return made("bare/hooks/pre-commit") }, "create", "bare/hooks/pre-commit", "", "hooks/**", `add ".git/hooks"`, 0},
	"18 an unknown name in a git directory":   {func() error { return made("bare/unknown") }, "create", "bare/unknown", "", "", "nothing does", 0},
	"19 a link in a git directory":            {func() error { return unix.Symlink("x", "bare/refs/x") }, "make a symbolic link", "bare/refs/x", "", "", "nothing does", 0},
	"20 a build file":                         {func() error { return made("lefthook.yml") }, "create", "lefthook.yml", "", "lefthook.*", "set Files.Protect.BuildFiles", 0},
	"21 a name that the policy adds":          {func() error { return made("d/house.rules") }, "create", "d/house.rules", "", "house.rules", `take "house.rules" out of Files.Protect.Add`, 0},
	"22 a .git file that leads away":          {func() error { return deferredWrite("d/.git", "gitdir: /etc\n") }, "open for writing", "d/.git", "", "", "nothing does", 0},
	"23 a new git directory with a hook":      {func() error { return unix.Rename("d/HEAD", "almost/HEAD") }, "rename", "d/HEAD", "almost/HEAD", "", "nothing does", 0},
	"24 an extended attribute":                {func() error { return unix.Setxattr(".envrc", "user.x", []byte("x"), 0) }, "change an extended attribute", ".envrc", "", ".envrc", "add", 0},
	"25 an index with a protected name":       {func() error { return renamed("bare/index", indexOf(".envrc", 1)) }, "rename", "bare/index", "", "", "nothing does; leave that name out", 0},
	"26 a second git configuration":           {func() error { return renamed("bare/config", "[extensions]\n\tworktreeConfig = true\n") }, "rename", "new", "bare/config", "", "nothing does; do it outside of the sandbox once", 0},

	"50 what is there already": {try: func() error { return unix.Mkdir(".idea", 0o755) }},
	"51 what is not there":     {try: func() error { return unix.Unlink(".gdbinit") }},
	"52 what the host refuses": {try: func() error { return unix.Mkdir("/proc/x", 0o755) }},
	"53 a hidden file's size":  {try: func() error { _, err := os.Stat("d/.envoy"); return err }},
}

// deniedWorks are ordinary acts beside them.
var deniedWorks = map[string]func() error{
	"1 a file":             func() error { return os.WriteFile("d/new", []byte("x"), 0o644) },
	"2 its mode":           func() error { return os.Chmod("d/new", 0o755) },
	"3 a rename":           func() error { return os.Rename("d/new", "d/newer") },
	"4 an index":           func() error { return renamed("bare/index", indexOf("plain", 1)) },
	"4 a git directory":    func() error { return os.WriteFile("bare/refs/main", nil, 0o644) },
	"5 a setgid directory": func() error { return os.Chmod("d", os.ModeSetgid|0o755) },
}

// renamed gives a new file with this text a name.
func renamed(name, text string) error {
	if err := os.WriteFile("new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename("new", name)
}

// indexOf is an index of version 2 with one file, whose object's name is of one byte again and again.
func indexOf(name string, object byte) string {
	e := make([]byte, 62)
	copy(e[24:], "\x00\x00\x81\xa4")
	copy(e[40:60], bytes.Repeat([]byte{object}, 20))
	e[61] = byte(len(name))
	e = append(e, name...)
	return "DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + string(e) + string(make([]byte, 8-len(e)%8+20))
}

func setsNoBit(name string) error {
	if err := unix.Chmod(name, 0o4755); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil || st.Mode&unix.S_ISUID != 0 {
		return fmt.Errorf("ESCAPE: mode %o, %v", st.Mode, err)
	}
	return unix.EACCES
}

func bindAt(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: name})
}

// deferredWrite writes a file that appears when it is judged, if it is; the next call of any process has it judged.
func deferredWrite(name, text string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	unix.Write(fd, []byte(text))
	unix.Close(fd)
	if err := os.WriteFile("d/flush", nil, 0o644); err != nil {
		return err
	}
	return unix.Access(name, unix.F_OK)
}

func tryDenied(args []string) {
	if err := os.Chdir(args[0]); err != nil {
		fmt.Println(err)
	}
	for _, name := range sortedKeys(deniedDeeds) {
		if err := deniedDeeds[name].try(); err == nil {
			fmt.Println(name, "succeeded")
		}
	}
	for _, name := range sortedKeys(deniedWorks) {
		if err := deniedWorks[name](); err != nil {
			fmt.Println(name, err)
		}
	}
	fmt.Println("done")
}

func sortedKeys[T any](m map[string]T) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// deniedSandbox makes a sandbox that protects names in a directory of its own, which is returned.
func deniedSandbox(t *testing.T, w walls) (*Sandbox, string) {
	t.Helper()
	base := makeGrounds(t, 1)
	p := attackPolicy(t, base, w)
	p.Files.Protect = policy.Protect{Add: []string{"house.rules"}, Everywhere: true}
	p.Files.HideNames = []string{".env"}
	dir := filepath.Join(base, "write", "0")
	for _, d := range []string{"d", ".idea", "bare/objects", "bare/refs", "bare/hooks", "almost/objects", "almost/refs", "almost/hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"f", ".envrc", "d/.env", "bare/HEAD", "d/HEAD", "almost/hooks/pre-commit"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return attackSandbox(t, p, w), dir
}

// TestKernelDenialsAreReported: every kind of refusal is in the report once, with the rule and the remedy, and nothing else is.
func TestKernelDenialsAreReported(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, dir := deniedSandbox(t, w)
		c := hostile(t, s, "denied", dir)
		out, err := c.CombinedOutput()
		if string(out) != "done\n" || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r := c.Report()
		left := slices.Clone(r.Violations)
		for _, name := range sortedKeys(deniedDeeds) {
			d := deniedDeeds[name]
			if d.operation == "" {
				continue
			}
			to := d.to
			if to != "" {
				to = filepath.Join(dir, to)
			}
			i := slices.IndexFunc(left, func(v Violation) bool {
				return v.Operation == d.operation && v.Path == filepath.Join(dir, d.path) && v.To == to
			})
			if i < 0 {
				t.Errorf("%s: not reported", name)
				continue
			}
			v := left[i]
			left = slices.Delete(left, i, i+1)
			if v.Rule != d.rule || !strings.HasPrefix(v.Remedy, d.remedy) || v.Count != max(d.count, 1) || v.Why == "" || v.Time.IsZero() {
				t.Errorf("%s: %+v", name, v)
			}
			if v.PID <= 0 || v.Claimed != attackTool+" denied "+dir {
				t.Errorf("%s: process %d, %q", name, v.PID, v.Claimed)
			}
			if text := v.String(); !strings.Contains(text, d.path) || !strings.Contains(text, "was refused: ") || !strings.Contains(r.String()+text, text) {
				t.Errorf("%s: %s", name, text)
			}
		}
		for _, v := range left {
			t.Errorf("reported as well: %v", v)
		}
		b, err := r.JSON()
		var again Report
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || len(again.Violations) != len(r.Violations) || again.Violations[0].String() != r.Violations[0].String() {
			t.Errorf("JSON: %v", err)
		}
	})
}
