package proxy

import (
	"context"
	"io"
	"time"
)

// New makes a gateway. It listens on nothing; Serve does with what it is given.
// The caller ends it with Close.
func New(cfg Config) (*Gateway, error) {
	g := &Gateway{cfg: cfg, idle: idleTime, ending: endingTime, silence: silence}
	g.open = map[io.Closer]struct{}{}
	g.preset()
	if err := g.intercept(); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	c := &g.cfg
	g.asks = asks{ctx: g.ctx, spawn: g.spawn, decide: c.Decide, patience: c.Patience, most: c.Limits.Connections, open: map[Request]*question{}}
	g.sightings = sightings{rules: c.Datagrams, lookup: g.lookup}
	g.names.seen = map[string]map[string]struct{}{}
	g.journal = newJournal(c.Observe)
	g.plain = newTransport(g.dialPlain)
	g.forwarder = newForwarder(g)
	g.server = g.newServer()
	return g, nil
}

// preset puts in what the zero values of a Config mean.
func (g *Gateway) preset() {
	c := &g.cfg
	if c.Patience <= 0 {
		c.Patience = presetPatience
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
	if c.Route == nil {
		c.Route = routeOf
	}
	if c.Limits.Connections <= 0 {
		c.Limits.Connections = min(presetConnections, max(mostFiles()/8, 1))
	}
	if g.names.most = c.Limits.Names; g.names.most <= 0 {
		g.names.most = presetNames
	}
	g.meter.most = max(c.Limits.Bytes, 0)
	if c.Limits.Rate > 0 {
		g.meter.pace = newPace(c.Limits.Rate)
	}
}

// Close ends every connection, listener and question, and returns when every
// goroutine of the gateway has ended, or some seconds later whatever a peer, a Dial of
// the policy's or a library does: the Summary says so then. It waits for an Observe no
// longer than Patience, and not for a Decide that does not heed its context.
func (g *Gateway) Close() error {
	g.cancel() // before anything is closed: who meets that knows why
	first := g.life.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if first {
			g.server.Close()
			g.plain.CloseIdleConnections()
		}
		g.running.Wait()
	}()
	late := time.NewTimer(g.ending)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		g.stuck()
	}
	g.journal.end(g.cfg.Patience)
	return nil
}
