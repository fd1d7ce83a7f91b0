// Package egress is the way out of a sandbox: a Gateway in the harness, one for
// each run, serves the listeners that were made inside the sandbox's network
// namespace, and lets through what the policy allows by name.
//
//	rules, err := egress.Compile([]string{"example.com:443", "*.example.org"}, nil)
//	g, err := egress.New(egress.Config{Rules: rules})
//	go g.Serve(httpListener, egress.HTTP)
//	go g.Serve(socksListener, egress.SOCKS)
//	defer g.Close()
//	fmt.Println(g.Summary())
//
// # The path of the data
//
//	HTTP absolute-form --> proxy.go ----------------------+--> exchange.go: screen, RoundTrip --> dial.go
//	HTTP CONNECT ------+                                  |         (credentials, request rules)
//	SOCKS5 ------------+-> Open: decide, resolve, check,  |
//	capture, Tunnel ---+   dial --> Carry: sniff ---------+ plain HTTP, or TLS that is terminated
//	                                        +--> splice.go: bytes, both ways
//
// Every way ends in the same few steps, in this order:
//
//  1. ParseHost makes the one canonical form of the host (host.go). Nothing after
//     it sees the client's spelling.
//  2. Rules.Target says Allow, Deny or Unknown (rules.go). Unknown asks Decide
//     (ask.go); without it, it is a denial.
//  3. The name is counted below its wildcard (limits.go), then looked up. A name
//     that is denied is never looked up: a look-up is a message too.
//  4. Rules.Address is asked about each address (address.go). An address that is
//     not the public Internet's needs an entry that names it; no verdict of Decide
//     opens one. The next address is tried when one is refused or does not answer.
//  5. The address that was checked is the one dialled (dial.go); there is no
//     second look-up.
//  6. What the client sends first is looked at (sniff.go): the server name of a
//     TLS ClientHello has to be the target's, and plain HTTP is read as such, so
//     that its Host has to be the target's too.
//  7. One Event tells how it went (event.go).
//
// # The seams
//
// Gateway.terminates and Gateway.terminate are where TLS is terminated
// (terminate.go), Gateway.screen is where a request is judged and given its
// credentials (exchange.go calls it for each request, whichever way it came).
// They are set by New from Config; New refuses Credentials and Requests that
// nothing would carry out.
//
// # Decisions
//
//   - The server is net/http's and the forwarding httputil.ReverseProxy's: both
//     regenerate the message from what they parsed, so that what one side sent
//     is never passed on with framing that the other could read otherwise, and both
//     are kept by the Go project. elazarl/goproxy brings its own request loop
//     and its own handling of hop-by-hop headers, rewrites Host and follows the
//     environment's proxy variables by default, and offers nothing here that these
//     two lack. What net/http tolerates and this package does not (obs-fold, bare
//     LF, Content-Length beside Transfer-Encoding) is refused on the way in
//     (strict.go).
//
//   - SOCKS5 is a handshake of four messages (socks.go); the libraries for it
//     resolve names themselves or take them apart as strings, which is what has to
//     be in one place here.
//
//   - The ClientHello is read by crypto/tls: GetConfigForClient on a recorded
//     prefix. There is no parser of TLS here.
//
//   - Upstream connections are direct. The harness's own HTTP_PROXY and the like
//     are not read: the address that was checked would then be looked up by
//     somebody else.
//
//   - Redirects are the client's business; none is followed here.
//
//   - A verdict of Decide is good for the connection or request that asked, and
//     for those that asked at the same time. Whoever wants to remember it does
//     that in Decide.
//
//   - The host's name and the port are decided before the resolver is asked, the
//     address after. An entry that is an address grants that address written as
//     such, and is what a name has to resolve to when its address is special.
//
//   - Connections are kept open to plain HTTP servers, by host and port: each was
//     dialled to an address that was checked for that host and port, and the rules
//     never change.
//
//   - Of upgrades WebSocket is carried. Others are dropped from the request, as
//     HTTP lets a proxy do: h2c would carry requests that nobody reads.
//
//   - TRACE is not carried: its answer repeats what was put into the request.
//
//   - A client's bytes that could still become the first line of a request are
//     waited for, 30 seconds at most, and refused if the line does not end:
//     else a slow enough client could say "GET" and go unread.
//
//   - Nothing that is idle holds a buffer: a tunnel is two goroutines (splice.go,
//     read_linux.go), and bulk goes through the kernel's splice in pieces between
//     which limits are looked at.
//
// # Limits
//
// A host that is allowed can be told anything: through it, data leaves. A tunnel
// that is neither TLS nor HTTP/1 is passed as bytes. With Encrypted Client Hello
// the outer server name alone is seen, and a server that hosts several names can
// serve another; TLS without a server name is passed. HTTP/2 in clear text is
// bytes. Time and sizes tell things too.
package egress
