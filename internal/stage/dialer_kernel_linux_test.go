package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// TestKernelTheHarnessConnectsToAServerInside, many times and at once; at the same
// address outside there is nothing.
func TestKernelTheHarnessConnectsToAServerInside(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:8080", "[::1]:8080"} {
		t.Run(addr, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				i := begin(t, walls([]plan.Action{plan.Dialer{Slot: 2}}, nil), "serve", addr).held()
				d := i.dialer(2)
				defer d.Close()
				if c, err := net.Dial("tcp", addr); err == nil {
					c.Close()
					t.Error("it can be reached outside")
				}
				var all sync.WaitGroup
				for n := range 20 {
					all.Go(func() {
						c, err := d.Dial(context.Background(), netip.MustParseAddrPort(addr))
						if err != nil {
							t.Error(err)
							return
						}
						defer c.Close()
						fmt.Fprintf(c, "%04d", n)
						answer, err := io.ReadAll(c)
						if want := fmt.Sprintf("%04d!", n); err != nil || string(answer) != want {
							t.Errorf("%q, %v", answer, err)
						}
					})
				}
				all.Wait()
				before := sockets(t)
				if _, err := d.Dial(context.Background(), netip.MustParseAddrPort("127.0.0.1:9")); !errors.Is(err, unix.ECONNREFUSED) {
					t.Error(err)
				}
				if after := sockets(t); before != after {
					t.Errorf("%d sockets before, %d after", before, after)
				}
			})
		})
	}
}

// dialer returns the Dialer once the tool has said that it is there.
func (i *insider) dialer(slot int) *Dialer {
	i.t.Helper()
	for n := 0; !strings.Contains(i.output(), "ready"); n++ {
		if n > 20_000 {
			i.t.Fatal("the server inside does not begin")
		}
		time.Sleep(time.Millisecond)
	}
	f := i.c.Received(slot)
	if f == nil {
		i.t.Fatal("nothing has come up")
	}
	return NewDialer(f)
}

// TestKernelADialerEndsWithItsContextAndItsSandbox: nobody waits for ever.
func TestKernelADialerEndsWithItsContextAndItsSandbox(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		i := begin(t, walls([]plan.Action{plan.Dialer{}}, nil), "serve", "127.0.0.1:8080").held()
		d := i.dialer(0)
		defer d.Close()
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := d.Dial(done, netip.MustParseAddrPort("127.0.0.1:8080")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if c, err := d.Dial(context.Background(), netip.MustParseAddrPort("127.0.0.1:8080")); err != nil {
			t.Errorf("after another was cancelled: %v", err)
		} else {
			c.Close()
		}
		i.end()
		if _, err := d.Dial(context.Background(), netip.MustParseAddrPort("127.0.0.1:8080")); !errors.Is(err, io.EOF) && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("of a sandbox that has ended: %v", err)
		}
	})
}

// TestKernelAHarnessThatMisbehavesDoesNotStopInit: one that asks and does not
// read, one that closes its end, one that asks for nonsense. The tool runs on and
// its end is seen.
func TestKernelAHarnessThatMisbehavesDoesNotStopInit(t *testing.T) {
	tests := map[string]func(t *testing.T, f *os.File){
		"it closes its end": func(t *testing.T, f *os.File) { f.Close() },
		"it asks and does not read": func(t *testing.T, f *os.File) {
			f.SetDeadline(time.Now().Add(100 * time.Millisecond))
			for n := 0; n < 10_000; n++ {
				if _, err := f.Write([]byte{unix.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
					return
				}
			}
		},
		"it asks for nonsense": func(t *testing.T, f *os.File) {
			d := NewDialer(f)
			f.Write([]byte{unix.AF_NETLINK, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0})
			answer, fd, err := d.receive()
			if err != nil || fd >= 0 || answer.Errno != int32(unix.EAFNOSUPPORT) || answer.Number != 77 {
				t.Errorf("%+v, %d, %v", answer, fd, err)
			}
			f.Write([]byte("x"))
			if _, _, err := d.receive(); !errors.Is(err, io.EOF) {
				t.Errorf("after half a request: %v", err)
			}
		},
	}
	for name, misbehave := range tests {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				i := begin(t, walls([]plan.Action{plan.Dialer{}}, nil), "wait").held()
				f := i.c.Received(0)
				defer f.Close()
				misbehave(t, f)
				i.in.Close()
				i.cmd.Wait()
				if code := i.cmd.ProcessState.ExitCode(); code != 0 {
					t.Errorf("exit %d: %s", code, i.end())
				}
			})
		})
	}
}

// TestKernelTheToolCannotAskForSockets: it has no descriptor of the requests, and
// cannot take init's.
func TestKernelTheToolCannotAskForSockets(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		i := begin(t, walls([]plan.Action{plan.Dialer{}}, nil), "steal").held()
		if got := i.end(); got != "0 sockets of init's seen, 0 taken, 0 of one's own" {
			t.Errorf("%s", got)
		}
	})
}

func TestADialerIsOfTheSandboxsNetwork(t *testing.T) {
	p := plan.Plan{Steps: []plan.Step{{In: plan.Init, Do: plan.Dialer{}}}}
	if _, err := Compile(p, Identity{}); !errors.Is(err, errNotInside) {
		t.Errorf("the host's: %v", err)
	}
	p = plan.Plan{Namespaces: plan.Namespaces{Net: true}, AsPID1: true, Steps: []plan.Step{{In: plan.Init, Do: plan.Loopback{Here: true}}, {In: plan.Init, Do: plan.Dialer{}}}}
	if _, err := Compile(p, Identity{}); err == nil {
		t.Error("an init that is outside")
	}
}

func init() {
	moreTools["serve"] = func(args []string) error { // says what it hears and an exclamation mark, until its input ends
		l, err := net.Listen("tcp", args[0])
		if err != nil {
			return err
		}
		fmt.Println("ready")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					b := make([]byte, 4)
					if _, err := io.ReadFull(c, b); err == nil {
						fmt.Fprintf(c, "%s!", b)
					}
				}()
			}
		}()
		return moreTools["wait"](nil)
	}
	moreTools["steal"] = func([]string) error {
		seen, taken, own := 0, 0, 0
		list, _ := os.ReadDir("/proc/1/fd")
		for _, e := range list {
			if to, err := os.Readlink("/proc/1/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				seen++
			}
		}
		init, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		for n := range 64 {
			if fd, err := unix.PidfdGetfd(init, n, 0); err == nil {
				taken++
				unix.Close(fd)
			}
			if _, err := unix.GetsockoptInt(n, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
				own++
			}
		}
		fmt.Printf("%d sockets of init's seen, %d taken, %d of one's own", seen, taken, own)
		return nil
	}
}
