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
//	HTTP absolute-form --> client.go, proxy.go -----------+--> exchange.go: screen --> carrier.go, origin.go --> dial.go
//	HTTP CONNECT ------+                                  |    (request rules, credentials)
//	SOCKS5 ------------+-> Open: decide, resolve, check,  |
//	capture, Tunnel ---+   dial --> Carry: sniff ---------+ plain HTTP, or TLS that is terminated
//	                                        +--> splice.go: bytes, both ways
//	capture, Datagrams --> decide, resolve, check, connect --> datagrams.go: one by one, both ways
//
// Every way ends in the same few steps, in this order:
//
//  1. ParseHost makes the one canonical form of the host (host.go). Nothing after
//     it sees the client's spelling.
//  2. Rules.Target says Allow, Deny or Unknown (rules.go). Unknown asks Decide
//     (ask.go); without it, it is a denial.
//  3. The name is counted below its wildcard, or among those that Decide alone
//     allows (limits.go), then looked up. A name that is denied is never looked up: a
//     look-up is a message too.
//  4. The kernel is asked where each address leads (route.go), and Rules.Address
//     whether it is open (address.go). An address that is not the public Internet's
//     needs an entry that names it, one of the host's own an entry of that address
//     alone; no verdict of Decide opens one. The next address is tried when one is refused or does not answer.
//  5. The address that was checked is the one dialled (dial.go); there is no
//     second look-up.
//  6. What the client sends first is looked at (sniff.go): the server name of each
//     TLS ClientHello in clear text has to be the target's (hellos.go: a server may
//     ask for a second one), and plain HTTP is read as such, so
//     that its Host has to be the target's too.
//  7. One Event tells how it went (event.go); a denial, and what was allowed and
//     failed, is in the Summary too. Its texts are printable (printable.go), whatever
//     a peer or the tool has put into them.
//
// Datagrams take steps 1, 3, 4, 5 and 7, by rules of their own (datagram_rules.go)
// and to a connected socket, so that the kernel takes an answer from that peer
// alone. Decide is not asked: a client that tries HTTP/3 first has to hear at once. Nor is there
// anything to look at: who a datagram of QUIC is for is encrypted. So none goes to
// a host at a port at which it has a credential or a request rule; not by its
// name, and not to an address that it has been seen to have, by whichever name
// (guarded.go). An event is of a flow, which ends when it is silent.
//
// Programs that only speak to what they start, ssh with its ProxyCommand, come by
// relay.go: the harness's own executable, which the sandbox shows as [RelayName]
// where the policy's Network.SSH asks for it. Executed under that name it joins its
// input and output to a CONNECT of the HTTP proxy, and is a client like any other.
// Its init runs it, so nothing of the harness's main does.
//
// ssh is told of the relay by its configuration (sshconfig.go): a text that is shown
// in the place of the system's ssh_config, with the system's own after it. Of each
// setting ssh takes the first value that it finds, so that the command line and a
// user's file still go before it. A ProxyCommand or ProxyJump of the system's own is
// not obeyed: what it would start has no other way out either. Hosts of loopback are
// reached directly, as by NO_PROXY. There is no variable for ssh; GIT_SSH_COMMAND is
// git's, takes away what a repository says in core.sshCommand, and so is set only
// where no ssh_config can be shown.
//
// # The boundary
//
// TLS to a host that has a credential or a request rule is terminated
// (terminate.go): the client meets a certificate of the sandbox's own authority
// (authority.go), which only the bundle that is shown inside has (trust.go), and the
// real server is verified as every client of it should. All other TLS is passed
// untouched. A request is judged (screenRequest: requests.go by the canonical path of
// path.go, then credentials.go) before it leaves, whichever way it came, and gets its
// secrets in the RoundTrip of boundary.go, on a copy that nothing outside of it
// sees; redact.go takes them out of the answer before it is returned.
//
//   - A secret stands where the tool has put its placeholder, if that is the place
//     that the credential says; none is added to a request without it. As "bearer"
//     the scheme Bearer, or GitHub's token, with the placeholder alone; as "basic"
//     the password, with Field for the user's name if it says one, or, without a
//     Field, the user's name; as "header" the first within Field's value; as "query" the
//     value of the parameter Field. Two entries of one Name are two places.
//   - Secrets go over verified TLS and nowhere else, loopback included.
//   - A placeholder in the line or header of a request to another host, or in
//     clear text, is a violation and not passed on. It would tell nobody anything;
//     but somebody has meant to. In another place of its own host's requests it passes,
//     because a browser repeats what was in a query as the Referer.
//   - Hosts with a credential are asked for whole answers (no Range: halves of a
//     secret are not seen) without compression. One that is gzip all the same is
//     unpacked, another coding refused. An answer's length is not known beforehand
//     then. What is held back of it, since it may be a secret's beginning, does not depend on
//     the secret: a tool that has guesses echoed learns nothing by it. It is what follows
//     the last line's end, or gRPC message, or WebSocket frame, as much as a secret has at
//     most; so a stream that has none of these is a little behind until it goes on. A
//     WebSocket is carried without compression, refused if its server answers with an
//     extension, and cut when the secret comes back in it.
//   - The key of the authority is drawn once for all runs of a sandbox (Trust), never
//     encoded, and forgotten with it. It may certify the hosts of the entries alone
//     (constraint.go). Making it and the bundles takes some milliseconds.
//   - A rule about paths refuses what servers read in several ways instead of
//     choosing a reading, and headers that could override method, path or host: all but
//     those that are known not to (overrides.go). A body with another method than POST, PUT and PATCH is the
//     last of its connection, for servers that take it for the next request; so it is
//     at hosts with a credential. GET includes HEAD. A rule holds at every port that its entry has: bytes that are neither
//     TLS nor HTTP/1 are not passed to such a host, and a connection to an address is
//     refused when it then names the host.
//   - A JVM reads no PEM as a trust store, and no variable but JAVA_TOOL_OPTIONS: it
//     gets a PKCS#12 file (software.sslmate.com/src/go-pkcs12, the one kept library
//     that writes Oracle's attribute for trusted certificates), with the password that
//     JDKs before 18 insist on. GnuTLS, and with it Debian's wget, reads no variable: for
//     it the bundle has to be shown at the place of the system's (SystemBundles).
//   - The agents of ssh and gpg have a room of their own (agent).
//
// # Decisions
//
//   - The server, the client and the forwarding are net/http's: http.Server, http.Transport
//     and httputil.ReverseProxy (carrier.go, exchange.go, proxy.go). All regenerate the message
//     from what they parsed: nothing that one side sent is passed on with framing that the
//     other could read otherwise, and a Host field that a proxy is not to look at (RFC 9112,
//     3.2.2) does not leave. elazarl/goproxy brings its own request loop and its own handling
//     of hop-by-hop headers, rewrites Host and follows the environment's proxy variables by
//     default, and offers nothing here that these lack. ErrorLogs are discarded.
//
//   - What http.Transport finds on a connection that no request is under way on it writes to
//     the program's own log, and nothing can turn that off. So an originConn (origin.go), which
//     is between it and the network, hands out nothing but the response to the request that is
//     under way: bytes beyond are the connection's end. Where a response's framing does not say
//     where it ends the connection is used once. Connections are kept that way for plain HTTP and
//     for the TLS of one client's connection.
//
//   - Where TLS is ended HTTP/1.1 is spoken alone, to the tool and to the server: ALPN
//     names nothing else. net/http's HTTP/2 server lets a client end the process, and its
//     client lets a server hang it for ever. HTTP/2, and gRPC with it, passes in tunnels to
//     hosts that have neither a credential nor a request rule.
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
//   - Of upgrades WebSocket is carried. Others are dropped from the request, as
//     HTTP lets a proxy do: h2c would carry requests that nobody reads.
//
//   - Interim responses (103 and the like) are left out: they would have to be looked through,
//     and written to the client beside the one who reads its body.
//
//   - An answer that begins before its request has ended is the last of its connection:
//     to keep that, net/http would read what is left of the body, past whoever passes it on.
//
//   - TRACE is not carried: its answer repeats what was put into the request.
//
//   - A CONNECT that is refused, for want of the key too, ends its connection: what
//     follows one is not looked at as requests are.
//
//   - A client's bytes that could still become the first line of a request are
//     waited for, 30 seconds at most, and refused if the line does not end:
//     else a slow enough client could say "GET" and go unread.
//
//   - SOCKS5's UDP ASSOCIATE is not served (command not supported): few clients
//     know it, those that send datagrams know no proxy, and it would be a second way
//     in for what the capture brings.
//
//   - A datagram that cannot go on at once is lost: behind the rate, a queue that has
//     a bound, here the socket's and there the capture's. One that the limit on bytes
//     has no room for ends the flow.
//
//   - Nothing that is idle holds a buffer: a tunnel is two goroutines (splice.go,
//     read_linux.go), and bulk goes through the kernel's splice in pieces between
//     which limits are looked at.
//
// # Bounds
//
// What a client or a server can make the harness hold, or wait for:
//
//   - A client's connection has a place from its first moment to its last, whichever way it
//     came. Whoever finds none is told so in
//     its protocol (decline.go): 503 with the limit's name, SOCKS's "not allowed by
//     ruleset", a reset of what was captured. There are at most 128 idle ones in all to servers of plain HTTP.
//   - Bytes and Rate count what passes between the gateway and servers: tunnels, headers
//     as well as bodies, TLS itself where it is terminated, WebSockets, granted ports, datagrams. Bytes
//     wait for their turn before they pass, all connections in one row, so that opening
//     more gains nothing. What the gateway says itself, refusals and the sandbox's side of
//     terminated TLS, does not count, nor do look-ups. A connection that Bytes ends is
//     a denial, and said to be one.
//   - As many calls of Decide, and of Lookup, may be under way as connections may be open,
//     waited for or not; more are denials. How often Decide is asked in all is not
//     bounded: a name that it denies goes nowhere.
//   - A header has 64 KiB, 200 fields and 30 seconds, a server's 64 KiB and 500 fields; so
//     have trailers, in 4 KiB. Interim responses are five at most; chunks' sizes and extensions
//     are short. All headers under way in a gateway share 64 MiB, by what they take in memory
//     (client.go): requests beyond are refused.
//     A ClientHello, a first line, a handshake have 30 seconds in all, however they come.
//     A connection that is kept has two minutes, one on which nothing moves ten: a body
//     that does not come as well (stall.go).
//   - Of events, texts are cut at 1 KiB, 1024 wait for Observe; of denials 100 kinds are kept, with
//     counts, the last kind among them; the rest is counted.
//   - Close waits five seconds for goroutines, whatever holds them, and says so.
//
// # Limits
//
// A host that is allowed can be told anything: through it, data leaves. A tunnel
// that is neither TLS nor HTTP/1 is passed as bytes. What is within TLS that is not
// terminated is not seen: with Encrypted Client Hello
// the outer server name alone is, in a renegotiation none, and a server that hosts several names can
// serve another, which the Host within asks for; TLS without a server name is passed.
// Which addresses a network translates to others by a prefix of its own (NAT64, RFC
// 6052), and which of its host's are translated elsewhere, is not known here. HTTP/2 in clear text is
// bytes. Time and sizes tell things too.
//
// A server that has a secret can give it back in a form of its own making (reversed,
// in pieces, encrypted); what is taken out is what servers echo: the text itself, its
// characters escaped once or twice (choices.go), and its digits (spellings.go: base64, base32, hexadecimal), found
// in one pass (matcher.go). What it gives for the secret,
// a session or a token of its own, the tool has. A secret in a body, and one
// that signs requests, has no place here. Request rules see
// methods and paths, not queries or bodies: what GraphQL does at one path is one thing
// to them. A client that pins certificates refuses the sandbox's. With "*" an address
// may be connected to without naming any host, past the rules of the hosts that it
// has. An entry for datagrams to an address, or to a
// name that shares one, reaches a guarded host at an address that no look-up has shown
// of it.
// A client's "Expect: 100-continue" is answered here, and not asked of the server.
package egress
