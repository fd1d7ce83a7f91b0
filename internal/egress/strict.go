package egress

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A strict connection is a client's to the HTTP server. It looks at each request's
// framing as it is read, and ends what net/http would put up with: what
// two programs could read differently. What is sent upstream is framed anew
// by net/http in any case; this is the second wall.
type strict struct {
	*tracked
	inner   *inner        // what the connection is inside of; nil: it is a proxy's client
	done    chan struct{} // closed with the connection; nil: nobody waits for it
	ended   sync.Once
	entered bool // Close waits for the server's goroutine

	again []byte // what was read and looked at, and is to be read once more

	mu    sync.Mutex
	scan  scanner
	fault error
	wrote time.Time // when the deadline of writes was set
}

func newStrict(c *tracked, g *Gateway, in *inner) *strict {
	return &strict{tracked: c, inner: in}
}

func (c *strict) Read(p []byte) (int, error) {
	if len(c.again) > 0 {
		n := copy(p, c.again)
		c.again = c.again[n:]
		return n, nil
	}
	if fault := c.faulted(); fault != nil {
		return 0, fault
	}
	n, err := c.tracked.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	fit, fault := c.scan.feed(p[:n])
	if fault == nil {
		return n, err
	}
	c.fault = fmt.Errorf("%w: %w", errAmbiguous, fault)
	c.g.finish(Event{Time: time.Now(), Protocol: string(HTTP)}, &Refusal{Why: c.fault.Error()})
	if fit == 0 {
		return 0, c.fault
	}
	return fit, nil
}

// unread gives back the last bytes that were read.
func (c *strict) unread(b []byte) { c.again = b }

func (c *strict) faulted() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// Write gives a client that reads slowly idleTime for each write.
func (c *strict) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.wrote) > idleTime/4 {
		c.wrote = now
		c.tracked.SetWriteDeadline(now.Add(idleTime))
	}
	return c.tracked.Write(p)
}

// host returns the Host field of the next request in order.
func (c *strict) host() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.scan.hosts) == 0 {
		return ""
	}
	h := c.scan.hosts[0]
	c.scan.hosts = c.scan.hosts[1:]
	return h
}

// named reports whether the next request in order has a Host field.
func (c *strict) named() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.scan.hosts) > 0 && c.scan.hosts[0] != ""
}

// Close closes the connection and tells who waits for that.
func (c *strict) Close() error {
	err := c.tracked.Close()
	if c.done != nil {
		c.ended.Do(func() { close(c.done) })
	}
	return err
}

// release ends the looking: what follows is no HTTP.
func (c *strict) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scan.state = passing
}

// CloseWrite tells the client that nothing more comes.
func (c *strict) CloseWrite() error { return closeWrite(c.tracked) }

func (c *strict) unwrap() net.Conn { return c.tracked }

// errAmbiguous is what two programs could read differently.
var errAmbiguous = errors.New("the request is ambiguous")

// A phase is what a scanner expects next.
type phase uint8

const (
	requestLine phase = iota
	field             // of the header
	body              // of a known length
	chunkSize
	chunkData
	chunkEnd
	trailer
	passing // no HTTP: all is let through
)

const (
	mostHeader = 64 << 10 // bytes of a request's header, or trailer
	mostChunk  = 1 << 10  // bytes of a chunk's first line
)

// A scanner follows the framing of requests, byte by byte.
type scanner struct {
	state   phase
	line    []byte // of which only a part has come
	size    int    // of the header so far
	left    int64  // of a body or a chunk
	connect bool
	old     bool // HTTP/1.0
	length  string
	chunked bool
	hosted  bool
	host    string
	hosts   []string // of requests whose header is complete
}

// feed takes the next bytes, and returns how many are in order before a fault.
func (s *scanner) feed(b []byte) (int, error) {
	fit := 0
	for fit < len(b) {
		rest := b[fit:]
		switch s.state {
		case passing:
			return len(b), nil
		case body, chunkData:
			n := min(s.left, int64(len(rest)))
			s.left -= n
			fit += int(n)
			if s.left == 0 {
				s.state = map[phase]phase{body: requestLine, chunkData: chunkEnd}[s.state]
			}
		default:
			end := bytes.IndexByte(rest, '\n') + 1
			if end == 0 {
				end = len(rest)
			}
			if err := s.part(rest[:end]); err != nil {
				return fit, err
			}
			fit += end
		}
	}
	return fit, nil
}

// part takes a line, or a part of one.
func (s *scanner) part(b []byte) error {
	if s.size += len(b); s.size > mostHeader+16<<10 {
		return fmt.Errorf("a header of more than %d bytes", mostHeader)
	}
	whole := b[len(b)-1] == '\n'
	if len(s.line) > 0 || !whole {
		s.line = append(s.line, b...)
		b = s.line
	}
	if !whole {
		return nil
	}
	s.line = s.line[:0]
	if cap(s.line) > 4<<10 {
		s.line = nil
	}
	if len(b) < 2 || b[len(b)-2] != '\r' {
		return fmt.Errorf("a line that ends without a carriage return")
	}
	b = b[:len(b)-2]
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("the byte %#02x in a line", c)
		}
	}
	return s.take(string(b))
}

// take takes a whole line without its end.
func (s *scanner) take(line string) error {
	switch s.state {
	case requestLine:
		return s.request(line)
	case field:
		if line == "" {
			return s.headed()
		}
		return s.field(line)
	case chunkSize:
		return s.chunk(line)
	case chunkEnd:
		if s.size = 0; line != "" {
			return fmt.Errorf("a chunk that is longer than it says")
		}
		s.state = chunkSize
	case trailer:
		if line == "" {
			s.reset()
			return nil
		}
		name, _, err := fieldName(line)
		if err == nil && (name == "host" || name == "content-length" || name == "transfer-encoding") {
			err = fmt.Errorf("the field %s in a trailer", name)
		}
		return err
	}
	return nil
}

func (s *scanner) reset() { *s = scanner{line: s.line, hosts: s.hosts} }

func (s *scanner) request(line string) error {
	method, rest, _ := strings.Cut(line, " ")
	target, proto, _ := strings.Cut(rest, " ")
	if !httpguts.ValidHeaderFieldName(method) || target == "" || proto != "HTTP/1.1" && proto != "HTTP/1.0" {
		return fmt.Errorf("a first line that is none of an HTTP/1 request")
	}
	s.connect, s.old, s.state = method == "CONNECT", proto == "HTTP/1.0", field
	return nil
}

func fieldName(line string) (name, value string, err error) {
	if line[0] == ' ' || line[0] == '\t' {
		return "", "", fmt.Errorf("a field that goes on in a second line")
	}
	name, value, found := strings.Cut(line, ":")
	if !found || !httpguts.ValidHeaderFieldName(name) {
		return "", "", fmt.Errorf("a field without a proper name")
	}
	return strings.ToLower(name), strings.Trim(value, " \t"), nil
}

func (s *scanner) field(line string) error {
	name, value, err := fieldName(line)
	if err != nil {
		return err
	}
	switch name {
	case "host":
		if s.hosted {
			return fmt.Errorf("two Host fields")
		}
		s.hosted, s.host = true, value
	case "content-length":
		if s.length != "" {
			return fmt.Errorf("two lengths")
		}
		if n, err := strconv.ParseUint(value, 10, 63); err != nil || value[0] == '+' {
			return fmt.Errorf("the length %q", value)
		} else {
			s.length, s.left = value, int64(n)
		}
	case "transfer-encoding":
		if s.chunked || len(value) != len("chunked") || !strings.EqualFold(value, "chunked") { // the length: K has other forms than ASCII's
			return fmt.Errorf("a transfer encoding that is not chunked alone")
		}
		s.chunked = true
	}
	return nil
}

// headed is the end of a header.
func (s *scanner) headed() error {
	framed := s.chunked || s.length != ""
	switch {
	case s.chunked && s.length != "":
		return fmt.Errorf("a length beside a transfer encoding")
	case s.chunked && s.old:
		return fmt.Errorf("a transfer encoding in HTTP/1.0")
	case s.connect && (s.chunked || s.left > 0):
		return fmt.Errorf("a CONNECT with a body")
	}
	s.hosts = append(s.hosts, s.host)
	left := s.left
	switch next := (scanner{line: s.line, hosts: s.hosts}); {
	case s.connect:
		next.state = passing
		*s = next
	case s.chunked:
		next.state = chunkSize
		*s = next
	case framed && left > 0:
		next.state, next.left = body, left
		*s = next
	default:
		*s = next
	}
	return nil
}

func (s *scanner) chunk(line string) error {
	digits, extension, _ := strings.Cut(line, ";")
	digits = strings.TrimRight(digits, " \t")
	n, err := strconv.ParseUint(digits, 16, 62)
	if err != nil || digits[0] == '+' || len(digits) > 16 || len(extension) > mostChunk {
		return fmt.Errorf("the chunk size %q", line[:min(len(line), 40)])
	}
	if s.size, s.left, s.state = 0, int64(n), chunkData; n == 0 {
		s.state = trailer
	}
	return nil
}
