package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// fakeEnvironment notes what would be done to the environment.
type fakeEnvironment struct{ done *[]string }

func (e fakeEnvironment) set(name, value string) error {
	*e.done = append(*e.done, name+"="+value)
	return nil
}
func (e fakeEnvironment) unset(name string) error { *e.done = append(*e.done, "-"+name); return nil }
func (e fakeEnvironment) clear()                  { *e.done = append(*e.done, "--") }

// parsed goes through a command line as root or not and returns what was said.
func parsed(root bool, args ...string) (*options, string, error) {
	var said strings.Builder
	var done []string
	p := newParser("bwrap", &speaker{out: &said}, root)
	p.environ = fakeEnvironment{&done}
	o, err := p.parse(args)
	return o, said.String() + strings.Join(done, " "), err
}

func TestEveryOptionIsThere(t *testing.T) {
	if len(table) != 67+1 { // and --share-fd
		t.Errorf("%d options", len(table))
	}
	names := map[string]bool{}
	for _, r := range table {
		if names[r.name] || !strings.HasPrefix(r.name, "--") || r.help == "" || len(strings.Fields(r.words)) != r.takes {
			t.Errorf("row %+v", r)
		}
		names[r.name] = true
	}
}

func TestEveryOptionMissesItsValues(t *testing.T) {
	for _, r := range table {
		for n := range r.takes {
			args := append([]string{r.name}, slices.Repeat([]string{"1"}, n)...)
			_, _, err := parsed(true, args...)
			want := strings.TrimPrefix(r.name, "--ro-")
			if r.name == "--ro-bind" || r.name == "--ro-bind-try" || r.name == "--ro-bind-data" || r.name == "--ro-overlay" {
				want = r.name
			}
			if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "--")+" takes ") {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}

func TestBadInputIsAnError(t *testing.T) {
	type test struct {
		args []string
		want string
	}
	tests := []test{
		{[]string{"--nonsense", "true"}, "Unknown option --nonsense"},
		{[]string{"-h"}, "Unknown option -h"},
		{[]string{"--bind=/", "/", "true"}, "Unknown option --bind=/"},
		{[]string{"--argv0", "a", "--argv0", "b", "true"}, "--argv0 used multiple times"},
		{[]string{"--perms", "0640", "--perms", "0640", "--tmpfs", "/a", "true"}, "--perms given twice for the same action"},
		{[]string{"--perms", "0640", "true"}, ""},
		{[]string{"--perms", "0640", "--bind", "/", "/", "true"}, "--perms must be followed by an option that creates a file"},
		{[]string{"--perms", "0640", "--symlink", "a", "/b", "true"}, "--perms must be followed by an option that creates a file"},
		{[]string{"--size", "1", "--size", "2", "--tmpfs", "/a", "true"}, "--size given twice for the same action"},
		{[]string{"--size", "1", "--dir", "/a", "true"}, "--size must be followed by --tmpfs"},
		{[]string{"--overlay-src", "/a", "true"}, "--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay"},
		{[]string{"--overlay-src", "/a", "--", "true"}, "--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay"},
		{[]string{"--overlay-src", "/a", "--chdir", "/", "true"}, "--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay"},
		{[]string{"--overlay", "/a", "/b", "/c", "true"}, "--overlay requires at least one --overlay-src"},
		{[]string{"--tmp-overlay", "/c", "true"}, "--tmp-overlay requires at least one --overlay-src"},
		{[]string{"--overlay-src", "/a", "--ro-overlay", "/c", "true"}, "--ro-overlay requires at least two --overlay-src"},
		{[]string{"--exec-label", "x", "true"}, "labeling not supported on this system"},
		{[]string{"--file-label", "x", "true"}, "labeling not supported on this system"},
		{[]string{"--cap-add", "NET_ADMIN", "true"}, "unknown cap: NET_ADMIN"},
		{[]string{"--cap-drop", "CAP_NONSENSE", "true"}, "unknown cap: CAP_NONSENSE"},
		{[]string{"--userns", "3", "--unshare-user", "true"}, "--userns not compatible --unshare-user"},
		{[]string{"--userns", "3", "--unshare-user-try", "true"}, "--userns not compatible --unshare-user-try"},
		{[]string{"--disable-userns", "true"}, "--disable-userns requires --unshare-user"},
		{[]string{"--unshare-user", "--info-fd", "3", "--disable-userns", "--userns-block-fd", "3", "true"}, "--disable-userns is not compatible with  --userns-block-fd"},
		{[]string{"--userns-block-fd", "3", "true"}, "--userns-block-fd requires --unshare-user"},
		{[]string{"--unshare-user", "--userns-block-fd", "3", "true"}, "--userns-block-fd requires --info-fd"},
		{[]string{"--uid", strconv.Itoa(os.Getuid() + 1), "true"}, "Specifying --uid requires --unshare-user or --userns"},
		{[]string{"--gid", strconv.Itoa(os.Getgid() + 1), "true"}, "Specifying --gid requires --unshare-user or --userns"},
		{[]string{"--hostname", "x", "true"}, "Specifying --hostname requires --unshare-uts"},
		{[]string{"--as-pid-1", "true"}, "Specifying --as-pid-1 requires --unshare-pid"},
		{[]string{"--unshare-pid", "--as-pid-1", "--lock-file", "/a", "true"}, "Specifying --as-pid-1 and --lock-file is not permitted"},
		{[]string{"--seccomp", "3", "--add-seccomp-fd", "3", "true"}, "--add-seccomp-fd cannot be combined with --seccomp"},
		{[]string{"--add-seccomp-fd", "999", "true"}, "Can't read seccomp data: Bad file descriptor"},
		{[]string{"--args", "999", "true"}, "Can't read --args data: Bad file descriptor"},
	}
	for _, r := range table {
		if words := strings.Fields(r.words); len(words) == 0 || words[0] != "FD" {
			continue
		}
		for _, bad := range []string{"", "-1", "0a", "x", "2147483648", "99999999999999999999"} {
			args := append([]string{r.name, bad}, slices.Repeat([]string{"/x"}, r.takes-1)...)
			tests = append(tests, test{append(args, "true"), "Invalid fd: " + bad})
		}
	}
	for _, kind := range []string{"uid", "gid"} {
		for _, bad := range []string{"", "-1", "root", "4294967295", "1 "} {
			tests = append(tests, test{[]string{"--" + kind, bad, "true"}, "Invalid " + kind + ": " + bad})
		}
	}
	for _, bad := range []string{"", "8", "10000", "-1", "rwx"} {
		tests = append(tests, test{[]string{"--perms", bad, "--dir", "/a", "true"}, "--perms takes an octal argument <= 07777"})
		tests = append(tests, test{[]string{"--chmod", bad, "/a", "true"}, "--chmod takes an octal argument <= 07777"})
	}
	for _, bad := range []string{"", "0", "-1", " 1", "1k", "0b1", "1_000", "18446744073709551616"} {
		tests = append(tests, test{[]string{"--size", bad, "--tmpfs", "/a", "true"}, "--size takes a non-zero number of bytes"})
	}
	tests = append(tests, test{[]string{"--size", "9223372036854775808", "--tmpfs", "/a", "true"}, "--size (for tmpfs) is limited to 9223372036854775807"})
	for _, test := range tests {
		_, _, err := parsed(true, test.args...)
		if got := fmt.Sprint(err); test.want != "" && got != test.want || test.want == "" && err != nil {
			t.Errorf("%q: %v, want %s", test.args, err, test.want)
		}
	}
}

func TestRepeatedOptionsAreWarnedOf(t *testing.T) {
	for _, args := range [][]string{
		{"--chdir", "/"}, {"--sync-fd", "0"}, {"--block-fd", "0"}, {"--info-fd", "1"}, {"--json-status-fd", "1"}, {"--seccomp", "0"},
		{"--userns", "0"}, {"--userns2", "0"}, {"--pidns", "0"}, {"--uid", "0"}, {"--gid", "0"}, {"--hostname", "a"},
	} {
		_, said, _ := parsed(true, slices.Concat([]string{"--unshare-uts"}, args, args, []string{"true"})...)
		if want := "bwrap: Only the last " + args[0] + " option will take effect\n"; said != want {
			t.Errorf("%v: %q", args, said)
		}
	}
}

func TestStepsKeepTheirOrder(t *testing.T) {
	o, said, err := parsed(false, "--setenv", "A", "b", "--unsetenv", "C", "--clearenv", "--perms", "01777", "--size", "0x10", "--tmpfs", "tmp/../t", "--ro-bind-try", "/a b", "/c/",
		"--dir", "/d", "--overlay-src", "/1", "--overlay-src", "/2", "--tmp-overlay", "/o", "--perms", "0", "--file", "0", "/f", "--symlink", "to", "/l", "--chmod", "4755", "/m", "--", "--x", "y")
	if err != nil {
		t.Fatal(err)
	}
	want := []rootfs.Entry{
		rootfs.Tmpfs{At: "/t", Mode: 0o777 | fs.ModeSticky, Bytes: 16}, rootfs.Bind{Source: "/a b", At: "/c", Optional: true}, rootfs.Dir{At: "/d", Mode: 0o755},
		rootfs.TmpOverlay{At: "/o", Layers: []string{"/1", "/2"}}, rootfs.File{At: "/f", Mode: rootfs.NoAccess},
		rootfs.Symlink{At: "/l", Target: "to"}, rootfs.Chmod{At: "/m", Mode: 0o755 | fs.ModeSetuid},
	}
	var got []rootfs.Entry
	for _, s := range o.steps {
		got = append(got, s.entry)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(os.File{})); d != "" {
		t.Error(d)
	}
	if said != "A=b -C --" || strings.Join(o.command, " ") != "--x y" || !o.user {
		t.Errorf("said %q, command %q, user %v", said, o.command, o.user)
	}
}

func TestFlagsHaveAPosition(t *testing.T) {
	tests := []struct {
		args []string
		net  bool
	}{
		{[]string{"--unshare-all", "--share-net", "true"}, false},
		{[]string{"--share-net", "--unshare-all", "true"}, true},
		{[]string{"--unshare-net", "--share-net", "true"}, false},
	}
	for _, test := range tests {
		o, _, err := parsed(true, test.args...)
		if err != nil || o.net != test.net {
			t.Errorf("%v: %v, %v", test.args, o, err)
		}
	}
	o, _, err := parsed(true, "--cap-drop", "ALL", "--cap-add", "cap_net_admin", "--cap-add", "CAP_CHOWN", "--cap-drop", "CAP_CHOWN", "true")
	if err != nil || o.caps != 1<<12 || !o.capsChosen {
		t.Errorf("capabilities %#x, %v", o.caps, err)
	}
}

func TestTooManyArguments(t *testing.T) {
	if _, _, err := parsed(true, slices.Repeat([]string{"--unshare-pid"}, mostArguments+1)...); err != errTooMany {
		t.Error(err)
	}
	if _, _, err := parsed(true, append(slices.Repeat([]string{"--unshare-pid"}, mostArguments-1), "true")...); err != nil {
		t.Error(err)
	}
}
