package proxy

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// New makes a proxy. It listens on nothing; Serve does with what it is given.
// The caller ends it with Close.
func New(cfg Config) (*Proxy, error) {
	g := &Proxy{cfg: cfg, idleTimeout: idleTimeout, closeTimeout: closeTimeout, udpTimeout: udpTimeout}
	g.open = map[io.Closer]Target{}
	g.setDefaults()
	if err := g.setupInterception(); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	c := &g.cfg
	g.asker = callback.Asker{Ctx: g.ctx, Spawn: g.spawn, Patience: c.Patience, Most: c.Limits.Connections, Memory: c.Memory, Run: new(callback.Memory)}
	g.names.seen = map[string]map[string]bool{}
	g.eventLog = &eventLog{kinds: map[denialKey]int{}, reached: map[Reached]int{}, queue: callback.NewQueue(c.Observe), denied: c.Denied}
	plain := &originTransport{dial: g.dialPlain}
	g.transport = plain
	context.AfterFunc(g.ctx, plain.idle.close)
	g.reverseProxy = newReverseProxy(g)
	g.server = g.newServer()
	return g, nil
}

// setDefaults replaces the zero values of a Config.
func (g *Proxy) setDefaults() {
	c := &g.cfg
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.Memory == nil {
		c.Memory = new(callback.Memory)
	}
	if c.Lookup == nil {
		c.Lookup = lookupAbsolute
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	if c.DialUDP == nil {
		c.DialUDP = dialUDP
	}
	if c.Sockets == nil {
		c.Sockets = func() string { return "/proc/thread-self/net/" }
	}
	if c.Route == nil {
		c.Route = hostrules.RouteOf
	}
	if c.Limits.Connections <= 0 {
		c.Limits.Connections = min(defaultConnections, max(maxFiles()/8, 1))
	}
	if g.names.most = c.Limits.Names; g.names.most <= 0 {
		g.names.most = defaultNames
	}
	g.meter.max = max(c.Limits.Bytes, 0)
	if c.Limits.Rate > 0 {
		g.meter.rate = newRateLimiter(c.Limits.Rate)
	}
}

// Close ends every connection, listener and question, and returns when every
// goroutine of the proxy has ended, or some seconds later whatever a peer, a Dial of
// the policy's or a library does: the Summary says so then. It waits for an Observe no
// longer than Patience, and not for a Decide that ignores its context.
func (g *Proxy) Close() error {
	g.cancel() // before anything is closed, so that errors of closing are recognised
	first := g.tracker.closeAll()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if first {
			g.server.Close()
		}
		g.running.Wait()
	}()
	late := time.NewTimer(g.closeTimeout)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		g.stuck()
	}
	if first {
		g.tellRepeated()
	}
	g.queue.End(g.cfg.Patience, nil)
	return nil
}
