package sbpl

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// writesWorkspace lets everything be read and executed, and ws be written.
const writesWorkspace = `(version 1)(deny default)(allow process* signal file-read* file-ioctl)(allow file-write* (subpath (param "WS")))`

// An attempt is something that a profile denies, tried from a shell in ws. What
// succeeds of it prints a line.
type attempt struct {
	name, rules   string
	before, after string // shell scripts outside and inside
	refused       bool   // a strict compilation says that Linux cannot hold it
}

var attempts = []attempt{
	{"a link that is denied cannot be replaced", writesWorkspace + `(deny file-write* (literal "WS/link"))`, `mkdir ../there; ln -s ../there link`,
		`rm link && echo removed; mv link other && echo moved; ln -sfn /etc link && echo replaced`, false},
	{"nothing takes the place of a link to what is denied", writesWorkspace + `(deny file-write* (subpath "WS/link/hooks"))`, `mkdir ../there; ln -s ../there link`,
		`rm link; mkdir link; mkdir link/hooks && echo made; mkdir -p other/hooks; rmdir link; mv other link && echo moved`, false},
	{"a link to nothing is no way to a denied name", writesWorkspace + `(deny file-write* (subpath "WS/link"))`, `ln -s none link`,
		`rm link && echo removed; mkdir link && echo made`, false},
	{"a file in the way of a denied name is no way to it", writesWorkspace + `(deny file-write* (subpath "WS/file/sub"))`, `touch file`,
		`rm file; mkdir file; mkdir file/sub && echo made`, false},
	{"a port that is denied by default is of no network of the host's", `(version 1)(allow default)(deny default (remote ip "*:25"))`, ``,
		`readlink /proc/self/ns/net | grep -xF "$HOSTNET"`, false},
	{"an exception of a denial does not lead through a link that a tool could have made",
		`(version 1)(allow default)(deny file-write* (require-not (require-any (subpath "/dev") (subpath (param "WS")) (subpath "WS/link"))))`, `mkdir ../there; ln -s ../there link`,
		`echo x >../there/new && echo written; echo x >mine || echo lost`, false},
	{"nor does one of reading", `(version 1)(allow default)(deny file-read* (require-all (subpath "TOP") (require-not (subpath (param "WS"))) (require-not (subpath "WS/link"))))`,
		`mkdir ../there; echo x >../there/file; ln -s ../there link; echo y >mine`, `cat ../there/file link/file; cat mine >/dev/null || echo lost`, false},
	{"an exception leads through a link that no tool could have made",
		`(version 1)(allow default)(deny file-write* (require-not (require-any (subpath "/dev") (subpath (param "WS")) (subpath "TOP/link/in"))))`, `mkdir -p ../there/in; ln -s there ../link`,
		`echo x >../link/in/new || echo refused; echo x >../new && echo written`, false},
	{"what is in /private and not in its tmp", `(version 1)(allow default)(deny file-write* (require-all (subpath "/private") (require-not (subpath "/private/tmp"))))`, ``,
		`for d in /var /etc; do echo x >$d/holdfast-$$ && echo $d written; done; echo x >/tmp/holdfast-$$ || echo lost; rm /tmp/holdfast-$$`, false},
	{"an expression of a place in /private", `(version 1)(allow default)(deny file-write* (regex #"^/private\/var/"))`, ``, `echo x >/var/holdfast-$$ && echo written; echo x >/tmp/holdfast-$$ || echo lost; rm /tmp/holdfast-$$`, false},
	{"a prefix of a place in /private", `(version 1)(allow default)(deny file-write* (prefix "/private/v"))`, ``, ``, true},
	{"a denial with a slash at the end", writesWorkspace + `(deny file-write* (subpath "WS/ro/"))`, `mkdir ro`, `echo x >ro/new && echo written`, true},
	{"a denial with two slashes", writesWorkspace + `(deny file-write* (subpath "WS//ro"))`, `mkdir ro`, `echo x >ro/new && echo written`, true},
	{"a denial with a dot", writesWorkspace + `(deny file-write* (literal "WS/./ro"))`, `mkdir ro`, ``, true},
	{"a denial with two dots", writesWorkspace + `(deny file-write* (subpath "WS/ro/../ro"))`, `mkdir ro`, ``, true},
	{"a denial of an empty path", writesWorkspace + `(deny file-write* (subpath ""))`, ``, ``, true},
	{"an exception that is unclean denies less, not more", `(version 1)(allow default)(deny file-write* (require-not (subpath "WS/")))`, ``, `echo x >new && echo written`, false},
	{"what lies in a directory that does not exist", writesWorkspace + `(deny file-write* (regex #"^WS/sec/.*"))`, ``,
		`mkdir sec && echo x >sec/evil && echo written; mkdir other; echo x >other/evil; mv other sec && cat sec/evil; echo y >mine || echo lost`, false},
	{"what lies in a directory that does not exist, and is allowed itself", writesWorkspace + `(deny file-write* (require-all (subpath "WS/sec") (require-not (literal "WS/sec"))))`, ``,
		`mkdir sec && echo x >sec/evil && echo written; mkdir -p other/sec && echo deep`, false},
	{"the reading of it", writesWorkspace + `(deny file-read-data (regex #"^WS/sec/.*"))`, ``, `mkdir sec && echo x >sec/evil && cat sec/evil`, true},
	{"what lies in what is a file", writesWorkspace + `(deny file-write* (regex #"^WS/f/.*"))`, `echo x >f`,
		`rm f && mkdir f && echo x >f/evil && echo written; echo y >f || echo lost; mv f g && echo moved`, false},
	{"what lies in what is a file, in a directory that could be another", writesWorkspace + `(deny file-write* (regex #"^WS/d/f/.*"))`, `mkdir d; echo x >d/f`,
		`mv d e && mkdir -p d/f && echo x >d/f/evil && echo written; echo y >d/f || echo lost; echo z >d/g || echo lost`, false},
	{"a program that does not exist", writesWorkspace + `(deny process-exec* (literal "WS/evil"))`, ``,
		`cp /bin/echo evil; cp /bin/echo other; mv other evil; ./evil executed; cp /bin/true mine; ./mine || echo lost`, false},
	{"programs in a directory that does not exist", writesWorkspace + `(deny process-exec* (subpath "WS/dd"))`, ``, `mkdir dd; cp /bin/echo dd/p; dd/p executed`, false},
	{"a library that does not exist", writesWorkspace + `(allow file-map-executable)(deny file-map-executable (subpath "WS/dd"))`, ``,
		`mkdir dd; cp "$(ls /lib/*/libm.so.6 /usr/lib/libm.so.6 | head -n1)" dd/libm.so.6; LD_PRELOAD=$PWD/dd/libm.so.6 grep -o "r-xp.*WS/dd.*" /proc/self/maps`, false},
	{"the contents of a file that does not exist", writesWorkspace + `(deny file-write-data (literal "WS/log"))`, ``, `echo x >log; cat log; echo x >>log; cat log`, false},
	{"the removal of a file that does not exist", writesWorkspace + `(deny file-write-unlink (literal "WS/log"))`, ``, `>log; rm log && echo removed`, false},
	{"the mode of a file that does not exist", writesWorkspace + `(deny file-write-mode (literal "WS/log"))`, ``, `echo x >log; chmod 777 log && echo changed`, false},
	{"the times of what does not exist, in a directory that does not", writesWorkspace + `(deny file-write-times (regex #"^WS/log/"))`, ``, `mkdir log; echo x >log/a; touch -d 2001-01-01 log/a; ls -l log/a | grep 2001`, false},
	{"the making of a file that exists", writesWorkspace + `(deny file-write-create (literal "WS/f"))`, `echo x >f`, `rm f; echo y >g; mv g f && echo made; echo z >>f || echo lost`, false},
	{"the contents of a file where a directory is", writesWorkspace + `(deny file-write-data (literal "WS/d"))`, `mkdir d`, `rmdir d && echo x >d; cat d; echo z >d/mine || echo lost`, false},
	{"symbolic links", writesWorkspace + `(deny file-write-create (require-all (subpath (param "WS")) (vnode-type SYMLINK)))`, ``, ``, true},
	{"fifos", writesWorkspace + `(deny file-write* (require-all (subpath (param "WS")) (vnode-type FIFO)))`, ``, ``, true},
	{"sockets", writesWorkspace + `(deny file-write-create (vnode-type SOCKET))`, ``, ``, true},
	{"a directory that does not exist", writesWorkspace + `(deny file-write-create (require-all (literal "WS/d") (vnode-type DIRECTORY)))`, ``, `mkdir d && echo made; mkdir e || echo lost`, false},
	{"a link in the place of a file", writesWorkspace + `(deny file-write-create (require-all (literal "WS/f") (vnode-type SYMLINK)))`, `echo x >f`, `ln -sf /etc f && echo made; ln -s /etc g; mv g f && echo moved; echo y >f || echo lost`, false},
	{"hard links", writesWorkspace + `(deny file-link)`, `echo x >f`, `ln f g && echo made; mv f g || echo lost`, false},
	{"hard links, by default", `(version 1)(deny default)(allow process* signal file-read* file-ioctl)(allow file-write* (subpath (param "WS")))`, `echo x >f`, `ln f g && echo made`, false},
	{"hard links that are allowed", writesWorkspace + `(allow file-link)`, `echo x >f`, `ln f g || echo lost`, false},
	{"a name in a directory that could be another", writesWorkspace + `(deny file-write* (literal "WS/d/none"))`, `mkdir d`, `mkdir e; echo x >e/none; mv d c; mv e d; cat d/none 2>/dev/null && echo moved`, false},
	{"flags that are denied cannot be changed", writesWorkspace + `(deny file-write-flags)`, `touch file`, `chattr +d file 2>/dev/null && echo changed`, false},
	{"a setuid bit", writesWorkspace + `(deny file-write-setugid)`, `touch file`, `chmod u+s file && echo changed`, true},
	{"a mapping of what may be executed", `(version 1)(allow default)(deny file-map-executable (subpath (param "WS")))`, ``, ``, true},
	{"a script", `(version 1)(allow default)(deny process-exec-interpreter)`, ``, ``, true},
	{"a link itself can be read", `(version 1)(allow default)(deny file-read* (literal "WS/link"))`, `ln -s none link`, `readlink link`, true},
}

// TestKernelHoldsWhatStrictTakes tries each attempt, unless the strict compilation refuses it.
func TestKernelHoldsWhatStrictTakes(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, a := range attempts {
				t.Run(a.name, func(t *testing.T) { a.try(t) })
			}
		})
	})
}

// loose are held where Linux cannot hold all that the profile says, which a strict
// compilation refuses.
var loose = []attempt{
	{"symbolic links", writesWorkspace + `(deny file-write-create (require-all (subpath (param "WS")) (vnode-type SYMLINK)))`, ``,
		`ln -s /etc l && echo made; echo x >f || echo lost; mkdir d || echo lost; mkfifo p || echo lost`, true},
	{"fifos", writesWorkspace + `(deny file-write* (require-all (subpath (param "WS")) (vnode-type FIFO)))`, ``,
		`mkfifo p && echo made; mknod p p && echo made; echo x >f || echo lost; ln -s f l || echo lost`, true},
}

// TestKernelHoldsWhatItCan tries each of them.
func TestKernelHoldsWhatItCan(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, a := range loose {
				t.Run(a.name, func(t *testing.T) { a.compiled(t, Options{}) })
			}
		})
	})
}

func (a attempt) try(t *testing.T) { a.compiled(t, Options{Strict: true}) }

func (a attempt) compiled(t *testing.T, o Options) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	before := exec.Command("/bin/sh", "-c", a.before)
	before.Dir = ws
	if out, err := before.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, err := Parse(a.name, strings.NewReplacer("^WS/", "^"+regexp.QuoteMeta(ws)+"/", "WS/", ws+"/", "TOP", dir).Replace(a.rules), map[string]string{"WS": ws})
	if err != nil {
		t.Fatal(err)
	}
	policy, _, err := p.Policy(o)
	var wider *WiderError
	if errors.As(err, &wider) && !a.refused && strings.Contains(err.Error(), "could be looked at") {
		t.Skipf("needs the right to look at all files below this machine's /etc, /tmp and /var: %v", err)
	}
	if errors.As(err, &wider) != (a.refused && o.Strict) {
		t.Fatal(err)
	}
	if err != nil {
		return
	}
	s, err := sandbox.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := s.Command("/bin/sh", "-c", strings.ReplaceAll(a.after, "WS/", ws+"/")+"; echo end >&2")
	cmd.Dir = ws
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"HOSTNET=" + network, "PATH=/usr/bin:/bin"}
	var done, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &done, &errs
	if err := cmd.Run(); err != nil || done.Len() > 0 || !strings.HasSuffix(errs.String(), "end\n") {
		t.Errorf("%v, done: %s\n%s", err, &done, &errs)
	}
}
