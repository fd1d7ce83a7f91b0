package egress

import (
	"net/http"
	"strconv"
	"strings"
)

// An answerHead is a head so far.
type answerHead struct {
	text    []byte
	fields  int
	hints   int
	status  int
	old     bool // HTTP/1.0
	lengths []string
	codings []string
	folded  bool
}

// headed takes a line of a head.
func (c *originConn) headed(text string, n int) error {
	h := &c.head
	if err := c.pay(n); err != nil {
		return err
	}
	switch {
	case h.status == 0:
		if err := h.first(text); err != nil {
			return err
		}
	case text == "":
		return c.answer()
	default:
		h.field(text)
	}
	if h.text = append(append(h.text, text...), "\r\n"...); len(h.text) > mostHead || h.fields > mostAnswerFields {
		return errHead
	}
	return nil
}

// first takes a status line.
func (h *answerHead) first(text string) error {
	proto, rest, _ := strings.Cut(text, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if proto != "HTTP/1.1" && proto != "HTTP/1.0" || err != nil || len(code) != 3 {
		return errFraming
	}
	if h.status, h.old = int(n), proto == "HTTP/1.0"; n < 100 {
		return errStatus
	}
	return nil
}

func (h *answerHead) field(text string) {
	h.fields++
	name, value, _ := strings.Cut(text, ":")
	switch value = strings.Trim(value, " \t"); {
	case text[0] == ' ' || text[0] == '\t':
		h.folded = true
	case strings.EqualFold(name, "Content-Length"):
		h.lengths = append(h.lengths, value)
	case strings.EqualFold(name, "Transfer-Encoding"):
		h.codings = append(h.codings, value)
	}
}

// answer ends a head: what follows it depends on it.
func (c *originConn) answer() error {
	h := &c.head
	if h.status < 200 && h.status != http.StatusSwitchingProtocols {
		if h.hints++; h.hints > mostHints {
			return errHints
		}
		c.head = answerHead{hints: h.hints}
		return nil
	}
	once := false
	if c.phase, c.left, once = h.framing(c.toHead); !c.written {
		c.phase, once = passing, true // what is written later is no next request
	}
	if c.ready = append(c.ready, h.text...); once && h.status != http.StatusSwitchingProtocols {
		c.ready = append(c.ready, "Connection: close\r\n"...)
	}
	c.ready = append(c.ready, "\r\n"...)
	if h.text = nil; c.phase == sizedBody && c.left == 0 {
		c.end()
	}
	return nil
}

// framing says what follows a head, and whether that is the connection's last.
func (h *answerHead) framing(toHead bool) (next phase, left int64, once bool) {
	switch n, err := uint64(0), error(nil); {
	case h.status == http.StatusSwitchingProtocols || h.old || h.folded:
	case toHead || h.status == http.StatusNoContent || h.status == http.StatusNotModified:
		return sizedBody, 0, false
	case len(h.codings) == 1 && strings.EqualFold(h.codings[0], "chunked") && len(h.lengths) == 0:
		return chunkSize, 0, false
	case len(h.codings) == 0 && len(h.lengths) == 1:
		if n, err = strconv.ParseUint(h.lengths[0], 10, 62); err == nil {
			return sizedBody, int64(n), false
		}
	}
	return passing, 0, true
}
