package seatbelt_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

func TestAddresses(t *testing.T) {
	out := func(proto, address string) seatbelt.Query {
		return seatbelt.Query{Operation: "network-outbound", Protocol: proto, Address: address}
	}
	in := func(op, address, peer string) seatbelt.Query {
		return seatbelt.Query{Operation: op, Protocol: "tcp", Address: address, Peer: peer}
	}
	unix := func(op, path string) seatbelt.Query { return seatbelt.Query{Operation: op, Path: path} }
	for _, c := range []struct {
		filter string
		query  seatbelt.Query
		want   bool
	}{
		{`(remote ip "*:*")`, out("tcp", "10.0.0.1:1"), true},
		{`(remote ip)`, out("udp", "10.0.0.1:1"), true},
		{`(remote ip "*:80")`, out("tcp", "10.0.0.1:80"), true},
		{`(remote ip "*:80")`, out("tcp", "10.0.0.1:8080"), false},
		{`(remote ip "*:80" "*:81")`, out("tcp", "10.0.0.1:81"), true},
		{`(remote tcp "*:80")`, out("udp", "10.0.0.1:80"), false},
		{`(remote udp "*:53")`, out("udp", "10.0.0.1:53"), true},
		{`(remote tcp "*:80")`, out("", "10.0.0.1:80"), true}, // an address without a protocol is tcp's
		{`(remote tcp "*:80")`, out("ip", "10.0.0.1:80"), false},
		{`(remote ip "*:80")`, out("ip", "10.0.0.1:80"), true},
		{`(remote ip4)`, out("tcp", "10.0.0.1:80"), true},
		{`(remote ip4)`, out("tcp", "[::1]:80"), false},
		{`(remote tcp6)`, out("tcp", "[::1]:80"), true},
		{`(remote ip "localhost:80")`, out("tcp", "localhost:80"), true},
		{`(remote ip "localhost:80")`, out("tcp", "127.8.9.1:80"), true},
		{`(remote ip "localhost:80")`, out("tcp", "[::1]:80"), true},
		{`(remote ip "localhost:80")`, out("tcp", "localhost.example:80"), false},
		{`(remote ip "localhost:80")`, out("tcp", "127.example:80"), false},
		{`(remote ip "localhost:80")`, out("tcp", "0.0.0.0:80"), false},
		{`(remote ip "localhost:*")`, out("tcp", "10.0.0.1:80"), false},
		{`(remote ip "*:*")`, unix("network-outbound", "/s"), false},
		{`(remote unix-socket)`, unix("network-outbound", "/s"), true},
		{`(remote unix)`, unix("network-outbound", "/s"), true},
		{`(remote unix-socket)`, out("tcp", "localhost:80"), false},
		{`(remote unix-socket "/s")`, unix("network-outbound", "/s"), true},
		{`(remote unix-socket (path-literal "/s"))`, unix("network-outbound", "/t"), false},
		{`(literal "/s")`, unix("network-outbound", "/s"), true},
		{`(local ip "localhost:*")`, out("tcp", "example.com:443"), true}, // why Parse warns of it
		{`(local ip "localhost:*")`, in("network-bind", "127.0.0.1:80", ""), true},
		{`(local ip "localhost:*")`, in("network-bind", "0.0.0.0:80", ""), false},
		{`(local ip "*:80")`, in("network-inbound", "0.0.0.0:80", ""), true},
		{`(local ip "*:80")`, in("network-inbound", "0.0.0.0:81", ""), false},
		{`(remote ip "*:*")`, in("network-bind", "127.0.0.1:80", ""), false}, // nothing is at the other end
		{`(remote ip "*:*")`, in("network-inbound", "127.0.0.1:80", ""), true},
		{`(remote ip "localhost:*")`, in("network-inbound", "127.0.0.1:80", ""), false},
		{`(remote ip "localhost:*")`, in("network-inbound", "0.0.0.0:80", "127.0.0.1:5"), true},
		{`(remote ip "localhost:*")`, in("network-inbound", "127.0.0.1:80", "10.0.0.1:5"), false},
	} {
		p := mustParse(t, "(allow network* "+c.filter+")")
		if v := p.Evaluate(c.query); v.Allow != c.want {
			t.Errorf("%s and %+v: %v", c.filter, c.query, v.Allow)
		}
	}
}
