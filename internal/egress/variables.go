package egress

import "net/netip"

// VariablesOptions say where a tool finds its way out.
type VariablesOptions struct {
	HTTP, SOCKS netip.AddrPort // of the proxies, as seen from inside; zero: there is none
	Key         string         // "": the proxies ask for none
	Bundle      string         // path inside of the trust bundle; "": none
	Store       string         // path inside of a JVM's trust store; "": none
}

// Variables returns the environment that makes tools use the proxies and trust
// the bundle, as NAME=value, sorted.
func Variables(o VariablesOptions) []string { return nil }
