package seatbelt

import (
	"fmt"
	"strconv"
	"strings"
)

// protocols are what remote and local may begin with, by the protocol's name in
// the Filter.
var protocols = map[string]string{
	"ip": "ip", "ip4": "ip4", "ip6": "ip6", "tcp": "tcp", "tcp4": "tcp4", "tcp6": "tcp6", "udp": "udp", "udp4": "udp4", "udp6": "udp6",
	"unix-socket": "unix-socket", "unix": "unix-socket",
}

// An endpoint is an address of a profile.
type endpoint struct {
	local bool // localhost; else any host
	port  int  // -1: any
}

// parseEndpoint reads "HOST:PORT", of which seatbelt knows little.
func parseEndpoint(s string) (endpoint, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return endpoint{}, fmt.Errorf("port must be given in network address")
	}
	host, port := s[:i], s[i+1:]
	if host != "*" && host != "localhost" {
		return endpoint{}, fmt.Errorf("host must be * or localhost in network address")
	}
	e := endpoint{local: host == "localhost", port: -1}
	if port == "*" {
		return e, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return endpoint{}, fmt.Errorf("port must be * or a number from 1 to 65535 in network address")
	}
	e.port = int(n)
	return e, nil
}

// covers: the address is one that the profile's means. The local end of a connection that
// is not made yet is any address.
func (e endpoint) covers(address string, unbound bool) bool {
	if address == "" {
		return unbound || !e.local && e.port < 0
	}
	host, port := splitAddress(address)
	if e.local && !loopback(host) {
		return false
	}
	return e.port < 0 || port == strconv.Itoa(e.port)
}

// splitAddress is the host and the port of "host:port", brackets removed.
func splitAddress(a string) (host, port string) {
	i := strings.LastIndexByte(a, ':')
	if i < 0 {
		return a, ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(a[:i], "["), "]"), a[i+1:]
}

func loopback(host string) bool {
	if host == "localhost" || host == "::1" {
		return true
	}
	return strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}
