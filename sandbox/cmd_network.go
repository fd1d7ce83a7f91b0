package sandbox

import (
	"context"
	"net"
)

// NetworkEnviron returns the variables that make tools use what the policy's
// [Network] gives them: the proxies, the trust bundle, the credentials'
// placeholders, the agents' sockets. Every command has them already, and so has what
// [Cmd.Environ] returns; with [Env].AsGiven an Env of the caller's own needs them in it. They are of this command: those of another one
// are worth nothing here.
func (c *Cmd) NetworkEnviron() []string { return c.run.networkVariables() }

// DialInside connects to a server that the tool has at a port of its loopback,
// one of [Network.Listen], by IPv4, or by IPv6 if that is where it listens. It does
// not wait for the server to listen: until then the error wraps ECONNREFUSED. The
// command must have been started.
func (c *Cmd) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	return c.run.dialInside(ctx, port)
}
