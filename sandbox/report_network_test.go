package sandbox

import "testing"

func TestARemedyIsSaidWhereThePolicyHasOne(t *testing.T) {
	const hosts = "no entry of the allow-list names it; \"a.example:80\" would"
	for _, test := range []struct {
		name string
		v    Violation
		want string
	}{
		{"a host that nothing names", Violation{Protocol: "http", Host: "a.example", Port: 80, Why: hosts}, `add "a.example:80" to Network.Hosts`},
		{"a name that nothing names", Violation{Protocol: "dns", Host: "a.example", Why: "no rule allows it"}, `add "a.example" to Network.Hosts`},
		{"a host that Decide denies", Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "Decide", Why: "no"}, `add "a.example:80" to Network.Hosts, or let Network.Decide allow it`},
		{"a denied host", Violation{Protocol: "http", Host: "a.example", Port: 80, Rule: "*.example", Why: `the entry "*.example" of the deny-list names it`}, `remove "*.example" from Network.Deny`},
		{"a private address", Violation{Protocol: "http", Host: "a.example", Port: 80, Why: "the address 10.0.0.1 is private"}, `add "10.0.0.1:80" to Network.Hosts, if that address is meant`},
		{"a datagram that nothing grants", Violation{Protocol: "udp", Host: "a.example", Port: 443, Why: "no entry for datagrams names it; \"a.example:443\" would"}, `add "a.example:443" to Network.UDP, if it cannot do with TCP`},
		{"a datagram to an address that stands for nothing", Violation{Protocol: "udp", Host: "198.19.3.4", Port: 443, Why: "only TCP, questions to DNS and the datagrams that the policy grants leave the sandbox"}, "nothing does; the tool has to ask in another way"},
		{"a datagram to a private address", Violation{Protocol: "udp", Host: "a.example", Port: 500, Why: "the address 10.0.0.1 is private; only an entry for that address would allow it"}, `add "10.0.0.1:500" to Network.UDP, if that address is meant`},
		{"a datagram to a denied host", Violation{Protocol: "udp", Host: "a.example", Port: 500, Rule: "*.example", Why: `the entry "*.example" of the deny-list names it`}, `remove "*.example" from Network.Deny`},
		{"a datagram past a request rule", Violation{Protocol: "udp", Host: "a.example", Port: 443, Rule: "*.example:443", Why: `the policy judges the requests to a.example by "a.example:443", and a datagram's it could not see`}, "nothing does; the tool has to use TCP, where the policy sees what is asked"},
		{"no flow to spare", Violation{Protocol: "udp", Host: "a.example", Port: 500, Why: "the policy's limit on connections is reached"}, "raise Network.Limits.Connections"},
		{"another server name", Violation{Protocol: "connect", Host: "a.example", Port: 443, Why: "the server name is b.example, and the connection was asked for as a.example"}, "nothing does; the tool has to ask in another way"},
		{"no connection to spare", Violation{Protocol: "http", Why: "the policy's limit on connections is reached"}, "raise Network.Limits.Connections"},
		{"no byte to spare", Violation{Protocol: "connect", Host: "a.example", Port: 443, Why: "the policy's limit on bytes is reached"}, "raise Network.Limits.Bytes"},
		{"no name to spare", Violation{Protocol: "connect", Host: "a.example", Port: 443, Rule: "*.example", Why: `512 names were asked for below "*.example", which is the policy's limit`}, "raise Network.Limits.Names"},
		{"a wrong password", Violation{Protocol: "http", Why: "the proxy's password is missing or wrong"}, "nothing does; the tool has to ask in another way"},
	} {
		if got := remedyOf(test.v); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
