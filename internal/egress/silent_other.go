//go:build !unix

package egress

import "net"

// silent cannot be found out here: no connection is used twice.
func silent(net.Conn) bool { return false }
