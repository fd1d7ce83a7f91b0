package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The crowd is a process of its own, for the sake of descriptors: the clients of a
// proxy and the server behind it. It does what it is told by lines, and says when that is done.
const crowdName = "holdfast-test-crowd"

func init() {
	kerneltest.Programs[crowdName] = func() {
		if err := new(crowd).serve(os.Stdin, os.Stdout); err != nil {
			fmt.Println("error:", err)
		}
	}
}

type crowd struct {
	conns []net.Conn
	idles []bool // connections that hold no tunnel
}

// serve obeys "open PROXY N", "check", which has bytes pass on every fiftieth tunnel, and
// "ended", which waits for the end of every connection.
func (c *crowd) serve(r io.Reader, w io.Writer) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			k, err := l.Accept()
			if err != nil {
				return
			}
			go giveBack(k)
		}
	}()
	fmt.Fprintln(w, "at", l.Addr())
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var proxy string
		var n int
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "open":
			fmt.Sscan(rest, &proxy, &n)
			err = c.open(proxy, n)
		case "check":
			err = c.check()
		case "ended":
			err = c.ended()
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "done")
	}
	return nil
}

// giveBack sends back what comes, holding no more than it needs of memory.
func giveBack(k net.Conn) {
	defer k.Close()
	b := make([]byte, 16)
	for {
		n, err := k.Read(b)
		if err != nil {
			return
		}
		k.Write(b[:n])
	}
}

// oneOf opens a connection: a tunnel through which a byte has gone each way, or one that
// has had an answer and is kept. It is reset at its end, and so leaves no port behind.
func oneOf(proxy string, tunnel bool) (net.Conn, error) {
	k, err := net.Dial("tcp", proxy)
	if err != nil {
		return nil, err
	}
	k.(*net.TCPConn).SetLinger(0)
	k.SetDeadline(time.Now().Add(time.Minute))
	ask, want, b := "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n", "403", make([]byte, 1024)
	if tunnel {
		ask, want = "CONNECT good.com:9 HTTP/1.1\r\n\r\n", "200"
	}
	io.WriteString(k, ask)
	n, err := k.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 "+want) {
		return nil, fmt.Errorf("%q, %w", b[:n], err)
	}
	if tunnel {
		err = pings(k)
	}
	k.SetDeadline(time.Time{})
	return k, err
}

func pings(k net.Conn) error {
	b := []byte{0}
	k.Write(b)
	_, err := io.ReadFull(k, b)
	return err
}

func (c *crowd) open(proxy string, n int) error {
	c.conns, c.idles = make([]net.Conn, n), make([]bool, n)
	failed := make(chan error, 8)
	for from := range 8 {
		go func() {
			var err error
			for i := from; i < n && err == nil; i += 8 {
				c.idles[i] = i%10 == 9
				c.conns[i], err = oneOf(proxy, !c.idles[i])
			}
			failed <- err
		}()
	}
	var err error
	for range 8 {
		err = errors.Join(err, <-failed)
	}
	return err
}

func (c *crowd) check() error {
	for i := 0; i < len(c.conns); i += 50 {
		if err := pings(c.conns[i]); !c.idles[i] && err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

func (c *crowd) ended() error {
	var all sync.WaitGroup
	for _, k := range c.conns {
		all.Go(func() {
			io.Copy(io.Discard, k)
			k.Close()
		})
	}
	all.Wait()
	return nil
}

// A leader tells a crowd what to do.
type leader struct {
	t  *testing.T
	in io.WriteCloser
	*bufio.Scanner
}

// gather starts a crowd and returns where its server is.
func gather(t *testing.T) (*leader, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args, cmd.Stderr = []string{crowdName}, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	l := &leader{t, in, bufio.NewScanner(out)}
	l.Scan()
	return l, strings.TrimPrefix(l.Text(), "at ")
}

func (l *leader) tell(format string, args ...any) {
	l.t.Helper()
	fmt.Fprintf(l.in, format+"\n", args...)
	if l.Scan(); l.Text() != "done" {
		l.t.Fatalf("%s: %s", fmt.Sprintf(format, args...), l.Text())
	}
}

// roomFor is how many of n connections the limit on descriptors has room for: nine of ten
// take two in the proxy's process.
func roomFor(n int) (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	return int(min(uint64(n), (max(l.Max, 100)-100)*10/19)), nil
}

// manyDescriptors is the fact without which a crowd is none.
var manyDescriptors = kerneltest.Fact{Name: "a hard limit on descriptors of 4096", Check: func() error {
	if n, err := roomFor(2000); err != nil || n < 2000 {
		return fmt.Errorf("there is room for %d connections, %w", n, err)
	}
	return nil
}}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// tooManyConns opens n connections to a proxy, of which there may be as many, and holds what
// they cost against bounds; one more is refused, and all end with the proxy.
func tooManyConns(t *testing.T, n int, l policy.NetworkLimits) {
	t.Helper()
	w := newWorld(t, Config{Network: policy.Network{Limits: l, Observe: func(policy.Connection) {}}}, "good.com")
	files := openFiles(t)
	crowd, place := gather(t)
	w.put("good.com", 9, place)
	w.ask("GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\nConnection: close\r\n\r\n") // all that is made once
	for w.placesHeld() > 0 {
		runtime.Gosched()
	}
	memory, routines := heap(), runtime.NumGoroutine()
	crowd.tell("open %s %d", w.http, n)
	bytes, each := (heap()-memory)/int64(n), float64(runtime.NumGoroutine()-routines)/float64(n)
	t.Logf("%d connections: %d bytes and %.2f goroutines each", n, bytes, each)
	if held := w.placesHeld(); held != n {
		t.Errorf("%d places are held", held)
	}
	if bytes > 64<<10 || each > 2.1 {
		t.Errorf("%d bytes and %.2f goroutines each", bytes, each)
	}
	for range 3 {
		code, body := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n")
		if code != 503 {
			t.Errorf("one more: %d", code)
		}
		has(t, body, "limit on connections is reached: "+strconv.Itoa(n)+" are open")
	}
	crowd.tell("check")
	w.g.Close()
	crowd.tell("ended")
	s := w.g.Summary()
	if s.Allowed != n-n/10 || s.Denied != n/10+1+3 {
		t.Errorf("%d allowed, %d denied", s.Allowed, s.Denied)
	}
	if last := s.Violations[len(s.Violations)-1]; s.Beyond == 0 && !strings.Contains(last.Reason, "limit on connections") {
		t.Errorf("%+v", last)
	}
	crowd.in.Close()
	crowd.Scan()
	for until := time.Now().Add(time.Minute); runtime.NumGoroutine() > routines || openFiles(t) > files+4; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines and %d files, %d and %d before", runtime.NumGoroutine(), openFiles(t), routines, files)
		}
	}
}

func TestKernelAttackTenThousandIdleConnections(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, manyDescriptors)
			n, err := roomFor(10_000)
			if err != nil {
				t.Fatal(err)
			}
			tooManyConns(t, n, policy.NetworkLimits{Connections: n})
		})
	})
}

// TestKernelAttackOneConnectionTooMany is the same with the preset limit.
func TestKernelAttackOneConnectionTooMany(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		kerneltest.Need(t, manyDescriptors)
		tooManyConns(t, 1024, policy.NetworkLimits{})
	})
}
