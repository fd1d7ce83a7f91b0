package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// clientClosed reports whether the table of sockets (proc_pid_net(5)) in dir has this end of a connection, and at the other end none of a process.
// A client that has closed its socket, and one that has ended its sending half and reads on, send the same.
func clientClosed(dir string, c *net.TCPConn) bool {
	at := func(a net.Addr) string {
		p := a.(*net.TCPAddr).AddrPort()
		if !p.Addr().Unmap().Is4() {
			return ""
		}
		b := p.Addr().Unmap().As4()
		return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), p.Port())
	}
	f, err := os.Open(dir + "tcp")
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 16<<20))
	here, there := at(c.LocalAddr()), at(c.RemoteAddr())
	found, held := false, false
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 {
			found = found || f[1] == here && f[2] == there
			held = held || f[1] == there && f[2] == here && f[9] != "0" // its inode
		}
	}
	return found && !held
}
