package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// The tool that serves whoever comes, at every address it can get, until its input
// ends. Its argument is a port.
var _ = offer(programs, "serve", func(args []string) {
	for _, network := range []string{"tcp4", "tcp6", "tcp"} { // Go's listeners are MPTCP's where they can be
		if l, err := net.Listen(network, ":"+args[0]); err == nil {
			go accept(l)
		}
	}
	if l, err := net.Listen("unix", "@holdfast-serve-"+args[0]); err == nil {
		go accept(l)
	}
	if c, err := net.ListenPacket("udp", ":"+args[0]); err == nil {
		go func() {
			for {
				_, from, err := c.ReadFrom(make([]byte, 1))
				if err != nil {
					return
				}
				c.WriteTo([]byte("s"), from)
			}
		}()
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
})

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Write([]byte("s"))
		c.Close()
	}
}

// served counts by how many of its addresses a tool's server answers.
func served(t *testing.T, port string, in io.WriteCloser, out io.Reader, start, wait func() error) (n int) {
	t.Helper()
	if err := start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	for network, address := range map[string]string{"tcp4": "127.0.0.1:" + port, "tcp6": "[::1]:" + port, "udp": "127.0.0.1:" + port, "unix": "@holdfast-serve-" + port} {
		c, err := net.Dial(network, address)
		if err != nil {
			continue
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write([]byte("x"))
		// Another server, such as the run's own proxy, may have been given the port meanwhile: the tool's says s.
		if said := make([]byte, 1); read(c, said) && said[0] == 's' {
			n++
		}
		c.Close()
	}
	in.Close()
	if err := wait(); err != nil {
		t.Error(err)
	}
	return n
}

func read(c net.Conn, b []byte) bool {
	_, err := c.Read(b)
	return err == nil
}

// TestKernelAttackServing: nobody outside is served by the tool: it would be told
// what the tool has read.
func TestKernelAttackServing(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, directWalls, func(t *testing.T, w walls) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := fmt.Sprint(portOf(t, l.Addr().String()))
		l.Close()
		plain := hostileBare(t, "serve", port)
		if n := served(t, port, must(plain.StdinPipe()), must(plain.StdoutPipe()), plain.Start, plain.Wait); n < 3 {
			t.Errorf("without walls it is served by %d addresses alone", n)
		}
		for name, network := range map[string]Network{"without a network": {}, "with one by name": {Hosts: []string{"allowed.example"}}} {
			p := attackPolicy(t, "", w)
			p.Network = network
			c := hostile(t, attackSandbox(t, p, w), "serve", port)
			var complained strings.Builder
			c.Stderr = &complained
			if n := served(t, port, must(c.StdinPipe()), must(c.StdoutPipe()), c.Start, c.Wait); n > 0 {
				t.Errorf("ESCAPE: %s, the tool serves by %d addresses\n%s", name, n, complained.String())
			}
		}
	})
}
