// Package hostrules decides about hosts and addresses: it makes the canonical form
// of a host, compiles allow-lists and deny-lists, and says of a host, before its name
// is looked up, and of each address, before it is dialled, whether a list opens it.
//
//	r, err := hostrules.Compile([]string{"example.com:443", "*.example.org"}, nil)
//	h, err := hostrules.ParseHost("Example.com.")
//	d := r.Target(h, 443) // Allow
//
// Datagrams are the same for UDP. RouteOf asks the kernel where an address leads; all
// else is pure.
package hostrules
