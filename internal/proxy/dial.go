package proxy

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

const (
	lookupTimeout = 15 * time.Second
	dialTimeout   = 15 * time.Second // of one address
	maxDials      = 16               // addresses of one name; a server of names can have thousands that do not answer
)

// decide decides about a target before its name is looked up. The error is a *Refusal.
func (g *Proxy) decide(ctx context.Context, t *Target, method, path string) (hostrules.Decision, error) {
	t.rules = g.rules.Load()
	if g.cfg.Inside != nil {
		if t.own = t.rules.Own(t.Host, t.Port, g.cfg.Hostname); t.own != nil {
			return hostrules.Decision{Outcome: hostrules.Allow, Rule: ruleInside}, nil
		}
	}
	d := t.rules.Target(t.Host, t.Port)
	if d.Outcome == hostrules.Unknown && g.cfg.Decide != nil {
		a := g.ask(ctx, policy.Request{Host: t.Host.String(), Port: t.Port, Protocol: t.Protocol, Method: method, Path: path, Rule: d.Rule})
		if a.Forgotten || t.rules != g.rules.Load() {
			return g.decide(ctx, t, method, path)
		}
		if d.Why = a.Reason; a.Allow {
			d = hostrules.Decision{Outcome: hostrules.Allow}
		} else if d.Why == "" {
			d.Why = "it was asked about, and denied"
		}
		d.Rule = a.Rule()
	}
	if d.Outcome != hostrules.Allow {
		return d, t.refuse(d)
	}
	if err := g.countName(*t, d.Rule); err != nil {
		return hostrules.Decision{Rule: d.Rule}, err
	}
	return d, nil
}

// ask puts a request to Decide. Questions are equal that are about the same host and port, if the harness sees no more: by any protocol; else about
// the same method and path, too. One that is remembered for a connection answers no request; a no that lasts is to all of the host and port.
func (g *Proxy) ask(ctx context.Context, r policy.Request) callback.Answer {
	thing := net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port)))
	same := thing
	if r.Method != "" {
		same += "\x00" + r.Method + "\x00" + r.Path
	}
	r = printableRequest(r)
	q := callback.Question{About: r.Host, Same: same, Thing: thing, Decide: func(ctx context.Context) policy.Verdict { return g.cfg.Decide(ctx, r) }}
	if tell := g.cfg.Asked; tell != nil {
		q.Asked, q.Answered = func() { tell(r, nil) }, func(a callback.Answer) { tell(r, &a.Verdict) }
	}
	return g.asker.Ask(ctx, q)
}

// dial looks a target up, once, and connects to the first of its addresses that may be dialled and answers.
func (g *Proxy) dial(ctx context.Context, t Target) (net.Conn, netip.AddrPort, error) {
	if t.own != nil {
		conn, to, err := g.dialFirst(ctx, t, g.cfg.Inside, func(a netip.Addr) hostrules.Decision {
			if _, loops := g.proxies.Load(netip.AddrPortFrom(a, t.Port).String()); loops {
				return hostrules.Decision{Rule: ruleInside, Why: "it is this proxy itself"}
			}
			return hostrules.Decision{Outcome: hostrules.Allow}
		})
		if err != nil && refusalOf(err) == nil {
			err = &insideError{err}
		}
		return conn, to, err
	}
	return g.dialFirst(ctx, t, g.cfg.Dial, func(a netip.Addr) hostrules.Decision {
		d := g.rules.Load().Address(t.Host, a, t.Port, g.cfg.Route(a))
		if entry := g.requests.passedBy(t, a); entry != "" && d.Outcome == hostrules.Allow {
			d = hostrules.Decision{Rule: "request rule " + entry, Why: "the name leads to " + a.Unmap().String() + ", whose requests the policy judges: connect to it by that address"}
		}
		return d
	})
}

// dialFirst is dial, whatever is dialled and whatever judges an address.
func (g *Proxy) dialFirst(ctx context.Context, t Target, dial dialer, judge func(netip.Addr) hostrules.Decision) (net.Conn, netip.AddrPort, error) {
	ctx, cancel := context.WithCancel(ctx)
	way := &dialing{cancel, make(chan struct{})}
	defer close(way.over)
	defer cancel()
	if !g.track(way, t) {
		return nil, netip.AddrPort{}, ErrClosed
	}
	defer g.untrack(way)
	if no := g.overruled(t); no != nil { // since it was decided
		return nil, netip.AddrPort{}, no
	}
	addrs, err := t.own, error(nil)
	if addrs == nil {
		addrs, err = g.lookup(ctx, t.Host)
	}
	if err != nil {
		return nil, netip.AddrPort{}, cmp.Or(g.overruled(t), err)
	}
	var refused, failed error
	dials := 0
	for _, a := range addrs {
		d := judge(a)
		if d.Outcome != hostrules.Allow {
			refused = t.refuse(hostrules.Decision{Rule: d.Rule, Why: d.Why})
			continue
		}
		to := netip.AddrPortFrom(a.Unmap(), t.Port)
		t.address = to.Addr()
		conn, err := g.connect(ctx, dial, t, to)
		if err == nil {
			return conn, to, nil
		}
		failed = err
		if dials++; dials == maxDials || ctx.Err() != nil {
			break
		}
	}
	return nil, netip.AddrPort{}, cmp.Or(failed, refused)
}

func (g *Proxy) lookup(ctx context.Context, h hostrules.Host) ([]netip.Addr, error) {
	if a, isAddr := h.Addr(); isAddr {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if !g.lookups.Acquire(g.cfg.Limits.Connections) {
		return nil, errors.New("too many names are being looked up")
	}
	var addrs []netip.Addr
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer g.lookups.Release()
		if callback.Panics(func() { addrs, err = g.cfg.Lookup(ctx, h.String()) }) {
			addrs, err = nil, errors.New("the policy's Lookup panicked")
		}
	}()
	select {
	case <-done:
		if err == nil && len(addrs) == 0 {
			err = errors.New("the name has no address")
		}
		return addrs, err
	case <-ctx.Done(): // a Lookup that ignores it is not waited for
		return nil, ctx.Err()
	}
}

// ruleInside is the rule of a connection to the tool's own loopback.
const ruleInside = "inside: the tool's own loopback"

// An insideError is why the tool's own loopback could not be connected to.
type insideError struct{ error }

func (e *insideError) Unwrap() error { return e.error }

// A dialer is a Config's Dial or DialUDP.
type dialer = func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// connect dials one address that was checked, and nothing else.
func (g *Proxy) connect(ctx context.Context, dial dialer, t Target, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, to)
	if err != nil {
		return nil, cmp.Or(g.overruled(t), err)
	}
	c, err := g.trackConn(conn, t)
	if err != nil {
		return nil, err
	}
	if no := g.overruled(t); no != nil { // before SetRules could see the connection
		c.Close()
		return nil, no
	}
	return c, nil
}
