package runner

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A socket is one that can be reached: the Process of its Port is not known yet.
type socket struct {
	policy.Port
	inode uint64
}

// socketsIn reads the text of /proc/net/tcp, tcp6, udp or udp6: the listeners, or the sockets that are bound and not connected (proc_pid_net(5)).
func socketsIn(table []byte, protocol string) (list []socket) {
	state := "0A" // TCP_LISTEN
	if protocol == "udp" {
		state = "07" // TCP_CLOSE
	}
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) < 10 || string(f[3]) != state {
			continue
		}
		host, number, _ := bytes.Cut(f[1], []byte(":"))
		address, is := kernelAddress(string(host))
		port, err := strconv.ParseUint(string(number), 16, 16)
		inode, errInode := strconv.ParseUint(string(f[9]), 10, 64)
		if is && err == nil && errInode == nil {
			list = append(list, socket{policy.Port{Port: uint16(port), Address: address, Protocol: protocol}, inode})
		}
	}
	return list
}

// kernelAddress reads an address as the kernel prints it: in words of 32 bits of this machine's order.
func kernelAddress(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	return netip.AddrFromSlice(raw)
}

// mostDescriptors bounds the search for the processes that have sockets open.
const mostDescriptors = 64 << 10

// holders finds a process for each socket's inode among those of a list. What is not found another process has, or none: the socket is on its way
// in another (unix(7), SCM_RIGHTS).
func holders(list []policy.Process, wanted map[uint64]bool) map[uint64]policy.Process {
	found := map[uint64]policy.Process{}
	looked := 0
	for _, p := range list {
		dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", p.Outside))
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(mostDescriptors - looked + 1)
		for _, name := range names {
			link, _ := os.Readlink(dir.Name() + "/" + name)
			number, is := strings.CutPrefix(link, "socket:[")
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
			if _, has := found[inode]; is && err == nil && wanted[inode] && !has {
				found[inode] = p
			}
		}
		dir.Close()
		if looked += len(names); looked >= mostDescriptors || len(found) == len(wanted) {
			break
		}
	}
	return found
}
