// Package proxy is the way out of a sandbox: a Proxy in the harness, one for each
// run, serves the listeners that were made inside the sandbox's network namespace,
// and lets through what the policy allows by name.
//
//	p, err := proxy.New(proxy.Config{Network: policy.Network{Hosts: []string{"example.com:443", "*.example.org"}}})
//	go p.Serve(httpListener, proxy.HTTP)
//	go p.Serve(socksListener, proxy.SOCKS)
//	defer p.Close()
//	fmt.Println(p.Summary())
//
// What is let through, asked of Decide and told to Observe has the types of package policy, which documents them.
//
// # The path of a connection
//
//	Serve: HTTP, absolute form --> handlers.go ---------------------------+--> request.go --> transport.go --> dial.go
//	Serve: HTTP, CONNECT --+                                              |    (request rules, credentials)
//	Serve: SOCKS5 ---------+-> tunnel.go: decide, look up, check, dial,   |
//	CarryTCP (capture) ----+   sniff what the client sends first ---------+ plain HTTP, or TLS that is intercepted
//	                                            +--> splice.go: bytes, both ways
//	CarryUDP (capture) ----> decide, look up, check, connect --> udp.go: datagrams, both ways
//
// Each takes the same steps in this order:
//
//  1. hostrules.ParseHost makes the canonical form of the host. No later step sees the client's spelling.
//  2. Rules.Target says Allow, Deny or Unknown. Unknown asks Decide (ask in dial.go, package callback), or is a denial.
//     A host that the tool's own machine has goes inside (Rules.Own, Config.Inside), without steps 3, 4 and 6.
//  3. The name is counted (namecounter.go), then looked up. A denied name is not looked up: a DNS query is a message too.
//  4. The kernel says where each address leads (hostrules.RouteOf), and Rules.Address whether it may be dialled.
//  5. The address that was checked is dialled (dial.go). There is no second look-up.
//  6. What the client sends first is read (sniff.go): the server name of the TLS ClientHello
//     (clienthello.go) and the Host of plain HTTP have to be the target's.
//  7. One policy.Connection, its event, reports the result (event.go). Its texts are printable.
//
// Datagrams take steps 1, 3, 4, 5 and 7 by hostrules.Datagrams. No entry for them may share a port with one that has a
// credential or a request rule: requests by QUIC cannot be read, nor whom they are for.
//
// # HTTP
//
// http.Server and httputil.ReverseProxy carry HTTP/1.1 above an originTransport (transport.go), and regenerate each
// message from what they parsed. An exchange (exchange.go) writes a request by http.Request.Write and reads its response
// by http.ReadResponse in the request's own goroutine. An originConn (originconn.go) is used again only if nothing has
// come on it since (idleconns.go). Only HTTP/1.1 is spoken where TLS is intercepted: net/http's HTTP/2 server lets a client end the
// process (concurrent map access by SETTINGS_HEADER_TABLE_SIZE), and its client lets a server hang it. HTTP/2
// passes in tunnels. A headMeter (headers.go) counts fields before net/http parses them, so net/http's buffer gets nothing
// beyond a header, or a request's body (bodyend.go), before the next header is being read.
//
// TLS to a host with a credential or a request rule is intercepted (intercept.go) with a certificate of the
// sandbox's authority (authority.go), which only the trust bundle shown inside has (trust.go); the real server
// is verified. Each request is judged (requests.go by the path of path.go, overrides.go, then credentials.go)
// before it leaves. inject.go puts secrets into a copy of it, and package redact takes them out of the response.
// Secrets are sent over verified TLS alone.
//
// SetRules (hosts.go) sets other hosts: it closes what goes to those that are no longer allowed.
//
// # Bounds
//
//   - Connections count from accept (tracker.go, serve.go); one too many is told so in its protocol (reject.go).
//   - Bytes and Rate count what passes between the proxy and servers (meter.go).
//   - A request's header has 200 fields, a response's 500, both 64 KiB; a trailer 1 KiB; all headers under way
//     share 64 MiB (headers.go). Headers, handshakes and ClientHellos have 30 seconds, a look-up and each of 16 dials 15 (dial.go).
//   - A ClientHello has 64 KiB (crypto/tls takes no more of it either), the certificates of a server whose TLS is intercepted 64 KiB
//     together (transport.go).
//   - A client's connection has two minutes between requests (proxy.go), a kept one to a server 30 seconds (idleconns.go); one on which
//     nothing moves ends after ten minutes (idle.go, meteredconn.go).
//   - Texts of events are cut at 1 KiB, 100 kinds of denials are kept with counts.
//   - Close waits five seconds for goroutines, and the Summary says if one did not end.
//
// # Limits
//
// A host that is allowed can be told anything: through it, data leaves. A tunnel that is neither TLS nor HTTP/1
// is passed as bytes, except to hosts with a request rule. TLS that is not intercepted is not read: with
// Encrypted Client Hello only the outer server name is seen, in a renegotiation none, and TLS without a server
// name is passed. Not carried: TRACE, upgrades other than WebSocket, interim responses, SOCKS5 BIND and UDP
// ASSOCIATE, upstream proxies of the harness. Redirects are returned, not followed. docs/network.md lists what
// is not stopped.
package proxy
