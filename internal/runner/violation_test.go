package runner

import (
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestARemedyIsSaidWhereThePolicyHasOne(t *testing.T) {
	const hosts = "no entry of the allow-list names it; \"a.example:80\" would allow it"
	for _, test := range []struct {
		name string
		v    policy.Violation
		want string
	}{
		{"a host that nothing names", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Why: hosts}, `add "a.example:80" to Network.Hosts, if you trust that host: the tool chose it`},
		{"a name that nothing names", policy.Violation{Protocol: "dns", Host: "a.example", Why: "no rule allows it"}, `add "a.example" to Network.Hosts, if you trust that host: the tool chose it`},
		{"a host that Decide denies", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "Decide", Why: "no"}, `add "a.example:80" to Network.Hosts, or let Network.Decide allow it, if you trust that host: the tool chose it`},
		{"a denied host", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "*.example", Why: `the entry "*.example" of the deny-list names it`}, `remove "*.example" from Network.Deny`},
		{"a private address", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Why: "the address 10.0.0.1 is private; only an entry for that address would allow it"}, `add "10.0.0.1:80" to Network.Hosts, if that address is meant`},
		{"a datagram that nothing grants", policy.Violation{Protocol: "udp", Host: "a.example", Port: 443, Why: "no entry for datagrams names it; \"a.example:443\" would allow it"}, `add "a.example:443" to Network.UDP, if it cannot do with TCP, if you trust that host: the tool chose it`},
		{"a datagram to an address that stands for nothing", policy.Violation{Protocol: "udp", Host: "198.19.3.4", Port: 443, Why: "only TCP, questions to DNS and the datagrams that the policy grants leave the sandbox"}, "nothing does; the tool has to ask in another way"},
		{"a datagram to a private address", policy.Violation{Protocol: "udp", Host: "a.example", Port: 500, Why: "the address 10.0.0.1 is private; only an entry for that address would allow it"}, `add "10.0.0.1:500" to Network.UDP, if that address is meant`},
		{"a datagram to a denied host", policy.Violation{Protocol: "udp", Host: "a.example", Port: 500, Rule: "*.example", Why: `the entry "*.example" of the deny-list names it`}, `remove "*.example" from Network.Deny`},
		{"a datagram past a request rule", policy.Violation{Protocol: "udp", Host: "a.example", Port: 443, Why: "the policy judges requests at this port, and a datagram's it could not see"}, "nothing does; the tool has to use TCP, where the policy sees what is asked"},
		{"no flow to spare", policy.Violation{Protocol: "udp", Host: "a.example", Port: 500, Why: "the policy's limit on connections is reached"}, "raise Network.Limits.Connections"},
		{"another server name", policy.Violation{Protocol: "connect", Host: "a.example", Port: 443, Why: "the server name is b.example, and the connection was asked for as a.example"}, "nothing does; the tool has to ask in another way"},
		{"no connection to spare", policy.Violation{Protocol: "http", Why: "the policy's limit on connections is reached: 1024 are open"}, "raise Network.Limits.Connections"},
		{"no byte to spare", policy.Violation{Protocol: "connect", Host: "a.example", Port: 443, Why: "the policy's limit on bytes is reached"}, "raise Network.Limits.Bytes"},
		{"no name to spare", policy.Violation{Protocol: "connect", Host: "a.example", Port: 443, Rule: "*.example", Why: `512 names were asked for below "*.example", which is the policy's limit`}, "raise Network.Limits.Names"},
		{"a placeholder in clear text", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "credential KEY", Why: "the placeholder of credential KEY is in a request in clear text; the credential is sent over TLS alone"}, "nothing does; the tool has to use https"},
		{"a placeholder for another", policy.Violation{Protocol: "https", Host: "b.example", Port: 443, Rule: "credential KEY", Why: "the placeholder of credential KEY is in a request to a host that it is not bound to; nothing was sent"}, `add "b.example:443" to the Hosts of the credential KEY, if that host is meant to have the secret`},
		{"a method that no rule has", policy.Violation{Protocol: "https", Host: "a.example", Port: 443, Method: "PUT", Path: "/x", Rule: "request rule *.example", Why: `PUT "/x" is not allowed at this host, which may be asked: GET, any path`}, "add a rule to Network.Requests that has PUT /x of *.example"},
		{"a path of several readings", policy.Violation{Protocol: "https", Host: "a.example", Port: 443, Method: "GET", Path: "/%2e", Rule: "request rule a.example", Why: "the path escapes a dot, so that rules about paths cannot judge it; this host may be asked: GET, paths below /v1/"}, "nothing does but a rule without Paths; the tool has to write the path plainly"},
		{"a header that overrides", policy.Violation{Protocol: "https", Host: "a.example", Port: 443, Method: "GET", Path: "/", Rule: "request rule a.example", Why: `the header "X-Http-Method" could have the server see another request than the one that is judged`}, "leave the header out, or add its name to Headers of the rule for a.example in Network.Requests, if its server takes nothing of where a request goes from it"},
		{"no name to spare for Decide", policy.Violation{Protocol: "connect", Host: "a.example", Port: 443, Rule: "Decide", Why: "512 names were asked for that Decide alone allowed, which is the policy's limit"}, "raise Network.Limits.Names"},
		{"words of the tool's own", policy.Violation{Protocol: "http", Host: `"x"`, Why: `not a host: "the policy's limit on bytes is reached, 9 names were asked for " has ' ' in it`}, "name the host plainly"},
		{"the tool's own loopback", policy.Violation{Protocol: "connect", Host: "localhost", Port: 5432, Why: "no entry of the allow-list names it; \"localhost:5432\" would allow it"}, "name the port in Network.Loopback, if the harness's own is meant; for its own the tool has to ask no proxy"},
		{"loopback that Decide denies", policy.Violation{Protocol: "http", Host: "localhost", Port: 80, Rule: "Decide", Why: "no"}, "name the port in Network.Loopback, if the harness's own is meant; for its own the tool has to ask no proxy"},
		{"a Decide that speaks as the limits do", policy.Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "Decide", Why: "the address book has it not"}, `add "a.example:80" to Network.Hosts, or let Network.Decide allow it, if you trust that host: the tool chose it`},
		{"a wrong password", policy.Violation{Protocol: "http", Why: "the proxy's password is missing or wrong"}, "nothing does; the tool has to ask in another way"},
	} {
		if got := remedyOf(&test.v); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
