package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Target is where a connection wants to go.
type Target struct {
	Host     hostrules.Host
	Port     uint16
	Protocol string // for the event: "connect", "socks", "tcp" ...

	rules     *hostrules.Rules // by which it was decided; nil: it was not
	own       []netip.Addr     // of the tool's own loopback, where Config.Inside dials; nil: it is another host
	address   netip.Addr       // that was dialled; zero: none yet
	datagrams bool
}

// A Tunnel is a connection to a target that was decided, checked and dialled, and has carried nothing yet.
type Tunnel struct {
	Target   Target
	Decision hostrules.Decision
	Address  netip.AddrPort // that was checked and dialled

	g      *Proxy
	ctx    context.Context
	server net.Conn
	event  policy.Connection
	ended  sync.Once

	// Where the requests in it are read:
	scheme      string
	via         http.RoundTripper
	serverTaken atomic.Bool // conn is a request's
}

// takeServer gives conn away, once.
func (u *Tunnel) takeServer() net.Conn {
	if u.serverTaken.Swap(true) {
		return nil
	}
	return u.server
}
