package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// CarryTCP decides about a target, connects to it and carries the bytes of a client's connection there and back, until both have ended. It closes
// conn. The error of a denial is a [*Refusal]. It is Open followed by Carry, with a place for the connection from the beginning.
func (g *Proxy) CarryTCP(ctx context.Context, conn net.Conn, t Target) error {
	if !g.enter() {
		conn.Close()
		return ErrClosed
	}
	defer g.leave()
	c, err := g.admit(conn, t)
	if err != nil { // before anybody is asked or dialled for it
		conn.Close()
		g.finish(newEvent(t), err)
		return err
	}
	u, err := g.openTunnel(ctx, t)
	if err != nil {
		c.Close()
		return err
	}
	return u.run(c, nil)
}

// openTunnel decides about a target and connects to it, before the client is told how that went. The caller ends the Tunnel with run or Close. A
// denial was noted as an event when openTunnel returns it.
func (g *Proxy) openTunnel(ctx context.Context, t Target) (*Tunnel, error) {
	u := &Tunnel{Target: t, g: g, ctx: ctx, event: newEvent(t)}
	err := u.connect()
	if err != nil {
		u.finishOnce(err)
		return nil, err
	}
	return u, nil
}

func (u *Tunnel) connect() (err error) {
	g := u.g
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	u.Decision, err = g.decide(u.ctx, &u.Target, "", "")
	u.event.Rule = u.Decision.Rule
	if err == nil && g.meter.exhausted() {
		err = u.Target.spent(u.Decision.Rule)
	}
	if err == nil {
		u.server, u.Address, err = g.dial(u.ctx, u.Target)
		u.event.Address, u.Target.address = address(u.Address), u.Address.Addr()
	}
	return err
}

// finishOnce finishes the event, once.
func (u *Tunnel) finishOnce(err error) {
	u.ended.Do(func() { u.g.finish(u.event, cmp.Or(u.g.overruled(u.Target), err)) })
}

// Close ends a Tunnel that is not going to be run.
func (u *Tunnel) Close() error {
	err := u.server.Close()
	u.finishOnce(nil)
	return err
}

// run looks at what the client sends first, after head, which it has sent already, and passes it all on. The upstream may be the first to speak: what
// it says is passed meanwhile.
func (u *Tunnel) run(client net.Conn, head []byte) (err error) {
	defer func() { u.finishOnce(err) }()
	defer func() {
		if c := u.takeServer(); c != nil { // else a request has it, which may keep it for others
			c.Close()
		}
	}()
	defer client.Close()
	g := u.g
	if c, is := client.(*trackedConn); is {
		g.track(c, u.Target)
	}
	if no := g.overruled(u.Target); no != nil {
		return no
	}
	p := g.newSpliced(u.ctx, client, u.server)
	defer p.stop()
	defer func() { u.event.Sent, u.event.Received = p.up.passed, p.down.passed }()
	p.listen()
	if u.Target.own != nil {
		return p.finish(head)
	}
	kind, head, err := u.sniffClient(p, head)
	if err != nil {
		return p.fail(err)
	}
	if secure := kind == sniffedTLS && g.interceptsTLS(u.Target); secure || kind == sniffedHTTP {
		if err := p.reclaim(); err != nil {
			return err
		}
		client = replay(client, head)
		if secure {
			return u.helloRefusal(g.interceptTLS(client, u))
		}
		u.scheme, u.via = "http", g.transport
		return g.serveRequestsIn(client, u)
	}
	if kind == sniffedTLS {
		if head, err = readClientHello(p.client, head, u.checkClientHello); err != nil {
			return p.fail(u.helloRefusal(err))
		}
	}
	return p.finish(head)
}

// checkClientHello judges a ClientHello.
func (u *Tunnel) checkClientHello(hello *tls.ClientHelloInfo) error {
	return u.g.checkName(u.Target, hello.ServerName, "TLS server name")
}

// helloRefusal makes a denial of what cannot be read as the ClientHello that it begins as.
func (u *Tunnel) helloRefusal(err error) error {
	if !errors.Is(err, errHello) {
		return err
	}
	return u.Target.refuse(hostrules.Decision{Rule: u.Decision.Rule, Why: err.Error()})
}

// sniffClient waits for what the client sends first, and says what it is. Requests and ClientHellos are judged later.
func (u *Tunnel) sniffClient(p *spliced, head []byte) (kind sniffedKind, _ []byte, err error) {
	if len(head) == 0 {
		head, err = p.up.firstBytes()
	}
	if err == nil {
		kind, head, err = sniff(p.client, head)
	}
	p.up.deadline = time.Time{}
	if r := refusalOf(err); r != nil && r != errBytes {
		r.Host, r.Port, r.Rule = u.Target.Host.String(), u.Target.Port, u.Decision.Rule
	}
	if err == nil && kind == sniffedOther && u.g.hasRequestRule(u.Target) {
		err = u.Target.refuse(hostrules.Decision{Rule: u.Decision.Rule, Why: "the policy judges the requests to this host, and these bytes are none"})
	}
	return kind, head, err
}

// checkName holds the name that a client gives inside of a connection against the target that was decided. A target that is an address was named as
// such, so the name is only held against the deny-list, unless the policy has something for the address itself.
func (g *Proxy) checkName(t Target, name, what string) error {
	if name == "" {
		return nil
	}
	h, err := hostrules.ParseHost(name)
	if err != nil {
		return t.refuse(hostrules.Decision{Why: "the " + what + " is " + err.Error()})
	}
	if h == t.Host {
		return nil
	}
	if t.Host.IsAddr() && g.interceptsTLS(t) { // the server could be another's by that name, and what is bound to the address is not
		return &Refusal{Host: t.Host.String(), Port: t.Port, Why: "the " + what + " is " + h.String() + ", and the policy has a credential, or judges requests, for the address alone",
			Instead: "a request to the address by itself, without a Host field or server name of another; or one to " + h.String() + " by that name, if the policy allows it"}
	}
	if t.Host.IsAddr() && !h.IsAddr() {
		if g.hasRequestRule(Target{Host: h, Port: t.Port}) {
			return t.refuse(hostrules.Decision{Why: "the " + what + " is " + h.String() + ", whose requests the policy judges: connect to it by that name"})
		}
		d := g.rules.Load().Target(h, t.Port)
		if d.Outcome != hostrules.Deny {
			return nil
		}
		return t.refuse(hostrules.Decision{Rule: d.Rule, Why: "the " + what + " is " + h.String() + ": " + d.Why})
	}
	return t.refuse(hostrules.Decision{Why: "the " + what + " is " + h.String() + ", and the connection was asked for as " + t.Host.String()})
}

// errMixed ends a connection whose server did not wait for a request.
var errMixed = errors.New("the server spoke, or hung up, before the request")

// reclaim stops what passes from the upstream, so that a request can be made on it. It is an error if anything has passed already.
func (p *spliced) reclaim() error {
	p.down.halted.Store(true)
	p.server.SetReadDeadline(time.Unix(1, 0))
	err := <-p.downEnd
	p.server.SetReadDeadline(time.Time{})
	if err != nil && !errors.Is(err, errHalted) {
		return err
	}
	if p.down.passed > 0 || err == nil {
		return errMixed
	}
	return nil
}
