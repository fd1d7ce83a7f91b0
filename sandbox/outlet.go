package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
)

// An outlet is one run's way to the network, as the harness serves it. It is
// made when the run's environment is first asked for, holds no goroutine and no
// descriptor of the host's until the run begins, and ends with the run.
type outlet struct {
	gateway *proxy.Proxy // nil: nothing of it is wanted
	wiring  compile.NetConfig
	place   string // the directory of its files, as the tool sees it
	http    netip.AddrPort
	socks   netip.AddrPort
	key     string          // what the proxies ask for; "": nothing, since nobody else can reach them
	outside [2]net.Listener // the proxies', where there is no network namespace
	twins   [2]net.Listener // the same ports of IPv6, where the tool cannot be kept from them alone
	agent   net.Listener    // in the run's own directory, where nothing of the sandbox's can be
	serving sync.WaitGroup
	ctx     context.Context // ends with the outlet
	end     context.CancelFunc

	mu      sync.Mutex
	endings []func()                                                       // of what else serves it
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // to a server inside; nil: there is no way
	closed  bool
	served  []string    // what is served, in words
	denied  []Violation // where there is no gateway to note them
	beyond  int         // further ones
	notes   []string
}

// outlet returns the run's, and makes it if there is none yet.
func (r *run) outlet() (*outlet, error) {
	r.plugging.Lock()
	defer r.plugging.Unlock()
	if r.out != nil || r.sandbox == nil {
		return r.out, nil
	}
	w := r.sandbox.netConfig
	o := &outlet{wiring: w, place: w.Dir}
	o.ctx, o.end = context.WithCancel(context.Background())
	inside := r.sandbox.plan.Namespaces.Net
	if w.Proxied && !inside {
		o.key = rand.Text()
	}
	if servesProxy(r.sandbox.policy.Network) {
		var err error
		if o.gateway, err = r.sandbox.newGateway(o.key); err != nil {
			return nil, fmt.Errorf("sandbox: the network's gateway: %w", err)
		}
	}
	if w.Proxied && inside {
		o.http, o.socks = netip.AddrPortFrom(compile.Loopback4, w.HTTP), netip.AddrPortFrom(compile.Loopback4, w.SOCKS)
	} else if w.Proxied {
		if err := o.listenAtFreePorts(); err != nil {
			return nil, fmt.Errorf("sandbox: the network's proxies: %w", err)
		}
	}
	r.out = o
	return o, nil
}

// unserved refuses a command whose network nobody would serve.
func (r *run) unserved() error {
	return &PolicyError{Field: "Cmd.Cancel", Problem: "is nil, so os/exec starts no goroutine that serves the network while the tool runs", Remedy: "set WaitDelay, leave Cancel as it is, or use this type's Start, Run or CombinedOutput"}
}

// networkVariables make programs use what the run has of a network.
func (r *run) networkVariables() []string {
	o, err := r.outlet()
	if err != nil || o == nil {
		return nil // enter fails with it
	}
	return o.variables(r.ownPlace(o))
}

// unsecret puts placeholders where what the policy lets pass of the environment has a
// credential's secret: under another name the tool would have it all the same. It
// changes the list.
func (r *run) unsecret(env []string) []string {
	o, err := r.outlet()
	if err != nil || o == nil || o.gateway == nil {
		return env // enter fails with the error
	}
	for i, v := range env {
		env[i] = o.gateway.Redact(v)
	}
	return env
}

// ownPlace is where the outlet's files are for the tool.
func (r *run) ownPlace(o *outlet) string {
	if o.place == "" && o.wiring.HasFiles() {
		return r.ownName()
	}
	return o.place
}

func (o *outlet) variables(place string) []string {
	var list []string
	if o.wiring.Proxied {
		v := clientenv.VariablesOptions{HTTP: o.http, SOCKS: o.socks, Key: o.key}
		if o.wiring.EndsTLS {
			v.Bundle, v.Store = place+"/"+compile.BundleFile, place+"/"+compile.StoreFile
		}
		if o.wiring.Relay != "" && o.place != "" && len(o.wiring.SSH) == 0 {
			v.ProxyCommand = clientenv.ProxyCommand(place+"/"+clientenv.RelayName, "")
		}
		list = clientenv.Variables(v)
		list = append(list, socksVariable+"="+o.socksURL())
		for name, value := range o.gateway.Placeholders() {
			list = append(list, name+"="+value)
		}
	}
	if o.wiring.SSHAgent {
		list = append(list, "SSH_AUTH_SOCK="+place+"/"+compile.SshFile)
	}
	return list
}

// socksVariable says where the SOCKS proxy is, to programs that can be told: few
// read a variable for it that others do not take for an HTTP proxy's.
const socksVariable = "HOLDFAST_SOCKS_PROXY"

func (o *outlet) socksURL() string {
	u := url.URL{Scheme: "socks5h", Host: o.socks.String()}
	if o.key != "" {
		u.User = url.UserPassword("holdfast", o.key)
	}
	return u.String()
}

// files are what the plan's given files hold.
func (o *outlet) files() []string {
	if !o.wiring.EndsTLS {
		return nil
	}
	store, _ := o.gateway.Store() // without one Java trusts what it has
	return []string{string(o.gateway.Bundle()), string(store)}
}

// write puts the outlet's files into the run's own directory, where they cannot
// be inside alone.
func (o *outlet) write(dir string, uid, gid int) error {
	if o == nil || o.place != "" {
		return nil
	}
	for i, text := range o.files() {
		at := filepath.Join(dir, []string{compile.BundleFile, compile.StoreFile}[i])
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

func (o *outlet) serveListener(l net.Listener, what string, serve func(net.Listener) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		l.Close()
		return
	}
	o.served = append(o.served, what+" at "+l.Addr().String())
	o.serving.Go(func() {
		defer l.Close()
		serve(l)
	})
}

func (o *outlet) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, proxy.Printable(text))
}

// mostDenied bounds what a report lists, as package proxy does.
const mostDenied = 100

// deny notes what was refused elsewhere than in the gateway.
func (o *outlet) deny(e proxy.Event) {
	if o.gateway != nil {
		o.gateway.Deny(e)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.denied) == mostDenied {
		o.beyond++
		return
	}
	o.denied = append(o.denied, violationOf(e))
}

// made is the run's outlet; nil: there is none, or none yet.
func (r *run) made() *outlet {
	r.plugging.Lock()
	defer r.plugging.Unlock()
	return r.out
}

// unplug ends the outlet and waits until all of it has ended.
func (r *run) unplug() {
	o := r.made()
	if o == nil {
		return
	}
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.closed = true
	endings := o.endings
	o.mu.Unlock()
	o.end()
	o.closeOutside()
	for _, end := range endings {
		end()
	}
	if o.gateway != nil {
		o.gateway.Close()
	}
	o.serving.Wait()
}

// captureWord is how a capture begins in the words of what is served.
const captureWord = "capture"
