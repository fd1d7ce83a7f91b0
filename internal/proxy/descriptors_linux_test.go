package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A harness that may have few files open: it serves a proxy to one server, and is asked to open a file.
const fewFilesName = "holdfast-test-few-files"

func init() {
	kerneltest.Programs[fewFilesName] = func() {
		if err := serveWithFewFiles(os.Args[1]); err != nil {
			fmt.Println("error:", err)
		}
	}
}

func serveWithFewFiles(server string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 512, Max: 512}); err != nil {
		return err
	}
	g, err := New(Config{
		Network: policy.Network{
			Hosts:  []string{"good.com"},
			Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil },
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server)
		},
	})
	if err != nil {
		return err
	}
	defer g.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go g.Serve(l, HTTP)
	fmt.Println("at", l.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println("left", filesLeft())
	}
	return nil
}

// filesLeft is how many files more the process can open, 64 at most.
func filesLeft() (n int) {
	for range 64 {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		defer f.Close()
		n++
	}
	return n
}

// TestTunnelsLeaveTheHarnessDescriptors: as many tunnels as a tool gets, in bulk, leave the harness files to
// open: their number follows RLIMIT_NOFILE.
func TestTunnelsLeaveTheHarnessDescriptors(t *testing.T) {
	kerneltest.Long(t)
	server := listen(t)
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, zeros{}) // and reads nothing
			}()
		}
	}()
	cmd := exec.Command("/proc/self/exe", server.Addr().String())
	cmd.Args[0], cmd.Stderr = fewFilesName, os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewReader(out)
	said := func() (word, rest string) {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(line, err)
		}
		word, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
		return word, rest
	}
	_, proxy := said()
	var tunnels []net.Conn
	const asked = 200
	for range asked {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "CONNECT good.com:9 HTTP/1.1\r\n\r\n")
		head := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, head); errors.Is(err, os.ErrDeadlineExceeded) { // 503, or a reset, where there is no room
			t.Fatalf("the proxy takes no connection after %d tunnels: it has no descriptor left", len(tunnels))
		}
		if string(head) == "HTTP/1.1 200" {
			tunnels = append(tunnels, c)
		}
	}
	for _, c := range tunnels { // what is written is read by neither side
		go io.Copy(c, zeros{})
	}
	fmt.Fprintln(in)
	if _, left := said(); left != "64" {
		t.Errorf("the harness can open %s files more, of 64, with %d tunnels", left, len(tunnels))
	}
	if len(tunnels) != 512/8 { // of which each takes two sockets and four ends of pipes at most
		t.Errorf("%d tunnels of %d that were asked for", len(tunnels), asked)
	}
}
