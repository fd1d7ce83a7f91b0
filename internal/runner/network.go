package runner

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
)

// A Network is one run's way to the network, as the harness serves it. It holds no
// goroutine until it is served, and no descriptor but the proxies' listeners where
// there is no network namespace.
type Network struct {
	of       *Networks
	observer *observer
	gateway  *proxy.Proxy // nil: nothing of it is wanted, or not yet (explains)
	wiring   compile.NetConfig
	inside   bool // the run has a network namespace
	// explains says that its proxy denies everything in words (serveExplanation).
	explains bool
	opened   atomic.Bool // although explains: hosts were set that it allows
	http     netip.AddrPort
	socks    netip.AddrPort
	key      string           // what the proxies ask for; "": nothing, since only the tool can reach them
	outside  [2]net.Listener  // the proxies', where there is no network namespace
	twins    [2]net.Listener  // the same ports of IPv6, where the tool cannot be kept from them alone
	connects []netip.AddrPort // of outside: what a tool without a network namespace may reach
	agent    net.Listener     // in the run's own directory, where the sandbox cannot have it made inside
	files    []string         // what the plan's given files hold
	serving  sync.WaitGroup
	ctx      context.Context // ends with the network
	end      context.CancelFunc

	mu      sync.Mutex
	endings []func()                                                       // of what serves it beside the gateway
	tables  string                                                         // of the sockets inside (proc_pid_net(5)); "": they are not known
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // to a server inside; nil: there is no way
	closed  bool
	served  []string // what is served, in words
	notes   []string
}

// New makes one run's network. inside says whether the run has a network namespace: else the
// proxies listen at the machine's loopback.
func (s *Networks) New(w compile.NetConfig, inside bool, o *observer) (*Network, error) {
	n := &Network{of: s, wiring: w, inside: inside, observer: o}
	n.ctx, n.end = context.WithCancel(context.Background())
	if w.Proxied && !inside {
		n.key = rand.Text()
	}
	if s.serves || w.SSHAgent || w.GPGAgent { // whose filters deny too
		own := n
		if !inside {
			own = nil
		}
		var err error
		if n.gateway, err = s.newGateway(n.key, o, own); err != nil {
			return nil, fmt.Errorf("sandbox: the network's gateway: %w", err)
		}
	}
	if w.EndsTLS {
		store, _ := n.gateway.Store() // without one Java trusts what it has
		n.files = []string{string(n.gateway.Bundle()), string(store)}
	}
	if n.explains = w.Explains && inside; n.explains {
		n.http = netip.AddrPortFrom(compile.Loopback4, w.HTTP)
	} else if w.Proxied && inside {
		n.http, n.socks = netip.AddrPortFrom(compile.Loopback4, w.HTTP), netip.AddrPortFrom(compile.Loopback4, w.SOCKS)
	} else if w.Proxied {
		if err := n.listenAtFreePorts(); err != nil {
			return nil, fmt.Errorf("sandbox: the network's proxies: %w", err)
		}
		n.endings = append(n.endings, n.closeOutside)
	}
	return n, nil
}

// socketTables returns the directory of the tables of the sockets inside.
func (n *Network) socketTables() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tables
}

// dialOwn connects to the tool's loopback on behalf of a client of the proxies.
func (n *Network) dialOwn(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	dial, over := n.dial, n.closed
	n.mu.Unlock()
	switch {
	case over:
		return nil, proxy.ErrClosed
	case dial == nil: // Namespaces.AsPID1
		return nil, &proxy.Refusal{Host: to.Addr().String(), Port: to.Port(), Why: "it is the tool's own loopback, to which nothing inside can connect on the proxy's behalf", Instead: "connect to it without the proxy"}
	}
	return dial(ctx, to)
}

// Redact puts placeholders where an environment has a credential's secret: under another name than the credential's the
// tool would have it all the same. It changes the list. A nil Network redacts nothing.
func (n *Network) Redact(env []string) []string {
	if n == nil {
		return env
	}
	n.mu.Lock()
	g := n.gateway
	n.mu.Unlock()
	for i, v := range env {
		if g != nil {
			env[i] = g.Redact(v)
		}
	}
	return env
}

// Secrets are the names of those variables that hold a credential's secret.
func (n *Network) Secrets(env []string) (names []string) {
	for i, clean := range n.Redact(slices.Clone(env)) {
		if name, _, _ := strings.Cut(env[i], "="); clean != env[i] {
			names = append(names, name)
		}
	}
	return names
}

// Variables are those by which programs find what the run has of a network. place is the
// directory of the network's files, as the tool sees it.
func (n *Network) Variables(place string) []string {
	var list []string
	if n.explains && n.opened.Load() {
		list = clientenv.Variables(clientenv.VariablesOptions{HTTP: n.http})
	} else if n.explains {
		n.of.explaining.Do(func() {
			n.of.explained = clientenv.Variables(clientenv.VariablesOptions{HTTP: n.http, Denies: true})
		})
		list = slices.Clone(n.of.explained)
	} else if n.wiring.Proxied {
		v := clientenv.VariablesOptions{HTTP: n.http, Key: n.key}
		if n.wiring.EndsTLS {
			v.Bundle, v.Store = place+"/"+compile.BundleFile, place+"/"+compile.StoreFile
		}
		if n.wiring.Relay != "" && n.wiring.Dir != "" && len(n.wiring.SSH) == 0 {
			v.ProxyCommand = clientenv.ProxyCommand(place+"/"+clientenv.RelayName, "")
		}
		list = clientenv.Variables(v)
		list = append(list, SOCKSVariable+"="+n.socksURL())
		for name, value := range n.gateway.Placeholders() {
			list = append(list, name+"="+value)
		}
	}
	if n.wiring.SSHAgent {
		list = append(list, "SSH_AUTH_SOCK="+place+"/"+compile.SshFile)
	}
	return list
}

// SOCKSVariable says where the SOCKS proxy is, to programs that can be told: few
// read a variable for it that others do not take for an HTTP proxy's.
const SOCKSVariable = "HOLDFAST_SOCKS_PROXY"

func (n *Network) socksURL() string {
	u := url.URL{Scheme: "socks5h", Host: n.socks.String()}
	if n.key != "" {
		u.User = url.UserPassword("holdfast", n.key)
	}
	return u.String()
}

// networkFiles are the names of the network's files, in the order of Network.files.
var networkFiles = []string{compile.BundleFile, compile.StoreFile}

// WriteFiles puts the network's files into the run's own directory, where they cannot
// be inside alone.
func (n *Network) WriteFiles(dir string, uid, gid int) error {
	if n.wiring.Dir != "" {
		return nil
	}
	for i, text := range n.files {
		at := filepath.Join(dir, networkFiles[i])
		err := os.WriteFile(at, []byte(text), 0o444)
		if err == nil && uid != os.Geteuid() {
			err = os.Chown(at, uid, gid)
		}
		if err != nil {
			return fmt.Errorf("sandbox: write the trust bundle: %w", err)
		}
	}
	return nil
}

func (n *Network) serveListener(l net.Listener, what string, serve func(net.Listener) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		l.Close()
		return
	}
	n.served = append(n.served, what+" at "+l.Addr().String())
	n.serving.Go(func() {
		defer l.Close()
		serve(l)
	})
}

func (n *Network) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, errtext.Printable(text))
}

// Close ends the network and waits until all of it has ended. A nil Network has.
func (n *Network) Close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	n.closed = true
	endings, gateway := n.endings, n.gateway
	n.mu.Unlock()
	n.end()
	for _, end := range endings {
		end()
	}
	if gateway != nil {
		gateway.Close()
	}
	if n.wiring.SSHAgent || n.wiring.GPGAgent {
		n.awaitAgents()
		return
	}
	n.serving.Wait()
}

// Close looks every half second whether all has ended that serves the network, mostWaits times.
const (
	betweenWaits = 500 * time.Millisecond
	mostWaits    = 10
)

// awaitAgents waits for what serves a network with an agent. Before Linux 6.16 a tool can send descriptors along with a message to an agent (listenAtPath
// in package stage), of which the harness closes the last as it reads the message or closes the connection; and that waits in the kernel, for a
// socket with SO_LINGER whose peer does not read as long as the tool has said (sk_stream_wait_close in net/core/stream.c). A signal ends it.
func (n *Network) awaitAgents() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.serving.Wait()
	}()
	again := time.NewTicker(betweenWaits)
	defer again.Stop()
	for range mostWaits {
		select {
		case <-ended:
			return
		case <-again.C:
			interruptThreads()
		}
	}
	n.note("what serves the run's network has not ended")
}

// captureWord is how a capture begins in the words of what is served.
const captureWord = "capture"
