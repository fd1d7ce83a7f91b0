package proxy

import (
	"io"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// SetRules replaces the rules of hosts. When it returns, nothing is on its way to what they do not allow: look-ups and dials were
// cancelled, connections reset, tunnels closed at both ends. What Decide has said before counts no more, and a question that
// waits is decided anew. Only a C library's look-up may still ask a name server.
func (g *Proxy) SetRules(r hostrules.Rules) {
	g.setting.Lock()
	defer g.setting.Unlock()
	g.asker.Forget() // so that no earlier verdict meets the new rules
	g.rules.Store(&r)
	g.asker.Forget() // and what was asked by the old ones since
	g.tracker.mu.Lock()
	open := maps.Clone(g.open)
	g.tracker.mu.Unlock()
	maps.DeleteFunc(open, func(_ io.Closer, t Target) bool { return g.overruled(t) == nil })
	for c := range open { // all of them before one is closed: its end would have the other closed
		if conn, is := c.(*trackedConn); is {
			if tcp := tcpConn(conn); tcp != nil {
				tcp.SetLinger(0) // what the kernel has not sent yet is dropped
			}
		}
	}
	var cut sync.WaitGroup
	for c := range open {
		cut.Go(func() { c.Close() }) // which waits for a write that is under way
	}
	cut.Wait()
}

// overruled returns the *Refusal of a target that was decided by other rules than the present ones, if these do not allow it.
func (g *Proxy) overruled(t Target) error {
	r := g.rules.Load()
	if t.rules == nil || t.rules == r {
		return nil
	}
	d := r.Target(t.Host, t.Port)
	if t.own != nil && r.Own(t.Host, t.Port, g.cfg.Hostname) != nil {
		return nil
	}
	if t.own != nil {
		d = hostrules.Decision{Why: "the hosts that were set name it: it is the harness's from now on"}
	} else if t.datagrams {
		d = g.AllowedDatagrams(t.Host, t.Port)
	} else if d.Outcome == hostrules.Allow && t.address.IsValid() {
		d = r.Address(t.Host, t.address, t.Port, g.cfg.Route(t.address))
	}
	if d.Outcome == hostrules.Allow {
		return nil
	}
	return t.refuse(d)
}

// A dialing is a look-up with the dials that follow.
type dialing struct {
	cancel func()
	over   chan struct{} // closed: it is
}

// Close cancels it, and returns when it is over.
func (d *dialing) Close() error {
	d.cancel()
	<-d.over
	return nil
}
