package runner

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A socket is one of the kernel's table: the Process of its Port is not known yet.
type socket struct {
	policy.Port
	remote netip.AddrPort // of a connection; else zero
	state  string
	inode  uint64
}

// stateListen is TCP_LISTEN.
const stateListen = "0A"

// at is the socket's own address: of IPv4, if an IPv6 socket has it.
func (s socket) at() netip.AddrPort { return netip.AddrPortFrom(s.Address.Unmap(), s.Port.Port) }

// socketsIn reads the text of /proc/net/tcp, tcp6, udp or udp6: the sockets that can be reached, which are the listeners, or those that are bound and
// not connected (proc_pid_net(5)).
func socketsIn(table []byte, protocol string) []socket {
	if protocol == "udp" {
		return socketsOf(table, protocol, "07") // TCP_CLOSE
	}
	return socketsOf(table, protocol, stateListen)
}

// socketsOf reads those in a state; "": in any.
func socketsOf(table []byte, protocol, state string) (list []socket) {
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) < 10 || state != "" && string(f[3]) != state {
			continue
		}
		local, is := kernelAddrPort(f[1])
		remote, _ := kernelAddrPort(f[2])
		inode, err := strconv.ParseUint(string(f[9]), 10, 64)
		if is && err == nil {
			list = append(list, socket{policy.Port{Port: local.Port(), Address: local.Addr(), Protocol: protocol}, remote, string(f[3]), inode})
		}
	}
	return list
}

// mostTable is how much is read of a table of sockets, of which a tool can open many.
const mostTable = 16 << 20

// readSockets reads tables in a directory.
func readSockets(dir string, in func(table []byte, protocol string) []socket, tables ...string) (list []socket, err error) {
	for _, table := range tables {
		f, err := os.Open(dir + table)
		if os.IsNotExist(err) && strings.HasSuffix(table, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(f, mostTable))
		f.Close()
		if err != nil {
			return nil, err
		}
		list = append(list, in(text, strings.TrimSuffix(table, "6"))...)
	}
	return list, nil
}

// kernelAddrPort reads an address and a port as the kernel prints them.
func kernelAddrPort(text []byte) (netip.AddrPort, bool) {
	host, number, _ := bytes.Cut(text, []byte(":"))
	address, is := kernelAddress(string(host))
	port, err := strconv.ParseUint(string(number), 16, 16)
	return netip.AddrPortFrom(address, uint16(port)), is && err == nil
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

// procNet is the directory of proc_pid_net(5) of a stage's init.
func procNet(stage int) (string, error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", stage, stage))
	init, _, _ := strings.Cut(string(children), " ")
	return "/proc/" + init + "/net/", err
}
