package capture

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// largest is the longest packet that IP has, and shared is the length from which
// on a packet keeps the buffer that it was read into: a shorter one is copied
// into a buffer of its size, so that what a packet holds is at most twice of it.
const (
	largest = 1 << 16
	shared  = largest / 2
)

// A device is the TUN device as the stack sees it. The stack's own endpoint for
// descriptors (link/fdbased) is not used: it keeps a descriptor of every device
// for good, and has no place between the device and the stack.
type device struct {
	file *os.File
	raw  syscall.RawConn
	mtu  uint32
	// judge sees each packet first: it returns an answer that is sent as it is, or
	// says that the packet is the stack's.
	judge func(b []byte) (answer []byte, pass bool)

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher
	reading    sync.WaitGroup
}

// newDevice takes a file over. A descriptor that arrived in blocking mode could
// not be closed under a reader, so it is given to the runtime's poller anew.
func newDevice(tun *os.File, mtu int, judge func(b []byte) ([]byte, bool)) (*device, error) {
	file, err := polled(tun)
	if err != nil {
		return nil, fmt.Errorf("capture: the device: %w", err)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("capture: the device: %w", err)
	}
	return &device{file: file, raw: raw, mtu: uint32(mtu), judge: judge}, nil
}

// polled closes a file and returns another one for what it was open for.
func polled(file *os.File) (*os.File, error) {
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dup error
	err = raw.Control(func(from uintptr) {
		if fd, dup = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0); dup == nil {
			dup = unix.SetNonblock(fd, true)
		}
	})
	if err == nil {
		err = dup
	}
	if err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return nil, err
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// read hands on what the tool's kernel sends until the device is closed, here or
// with the namespace that it is in.
func (d *device) read() {
	view := buffer.NewViewSize(largest)
	defer func() { view.Release() }()
	for {
		n, err := d.file.Read(view.AsSlice())
		if err != nil || n == 0 {
			return
		}
		b := view.AsSlice()[:n]
		answer, pass := d.judge(b)
		switch {
		case answer != nil:
			d.send([][]byte{answer})
		case !pass:
		case n < shared:
			d.deliver(buffer.NewViewWithData(b))
		default:
			view.CapLength(n)
			d.deliver(view)
			view = buffer.NewViewSize(largest)
		}
	}
}

// deliver gives the stack a packet of its own.
func (d *device) deliver(v *buffer.View) {
	protocol := header.IPv4ProtocolNumber
	if v.AsSlice()[0]>>4 == 6 {
		protocol = header.IPv6ProtocolNumber
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	defer pkt.DecRef()
	d.mu.RLock()
	to := d.dispatcher
	d.mu.RUnlock()
	if to != nil {
		to.DeliverNetworkPacket(protocol, pkt)
	}
}

// send writes one packet. One that cannot be written is lost, as packets are.
func (d *device) send(parts [][]byte) {
	_ = d.raw.Write(func(fd uintptr) bool {
		_, _ = unix.Writev(int(fd), parts)
		return true
	})
}

// close ends read and waits for it.
func (d *device) close() {
	d.file.Close()
	d.reading.Wait()
}

// WritePackets sends what the stack has for the tool.
func (d *device) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range pkts.AsSlice() {
		d.send(p.AsSlices())
	}
	return pkts.Len(), nil
}

// start begins to read. The stack has to be ready for what is read.
func (d *device) start() { d.reading.Go(d.read) }

// Attach sets the dispatcher that takes packets; nil when the stack has ended.
func (d *device) Attach(to stack.NetworkDispatcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dispatcher = to
}

// IsAttached reports whether the stack takes packets.
func (d *device) IsAttached() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.dispatcher != nil
}

// Capabilities says that checksums are not verified: the packets come from this
// kernel's memory.
func (d *device) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// MTU is the longest packet that the stack makes.
func (d *device) MTU() uint32 { return d.mtu }

// Wait returns when nothing is read any more.
func (d *device) Wait() { d.reading.Wait() }

// What follows is of links that have addresses and headers; this one has none.

func (d *device) SetMTU(uint32)                           {}
func (d *device) MaxHeaderLength() uint16                 { return 0 }
func (d *device) LinkAddress() tcpip.LinkAddress          { return "" }
func (d *device) SetLinkAddress(tcpip.LinkAddress)        {}
func (d *device) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (d *device) AddHeader(*stack.PacketBuffer)           {}
func (d *device) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (d *device) Close()                                  {}
func (d *device) SetOnCloseAction(func())                 {}

var _ stack.LinkEndpoint = (*device)(nil)
