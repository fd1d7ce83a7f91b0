package capture

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// A resolver answers a tool's questions about names out of the policy alone: no
// question, and no part of one, is ever passed on, so that no other host learns what
// a tool asks.
type resolver struct {
	allowed func(host string, port uint16) bool
	why     func(host string, port uint16) string // why not; may be nil
	names   *names
	note    func(d denial)
}

const (
	lifetime  = 60   // seconds for which an answer may be kept; it never changes during a run
	edeCode   = 15   // the EDNS option of RFC 8914
	edeDenied = 15   // its "Blocked"
	ednsSize  = 1232 // bytes that an answer may have; none has half of it
)

// reply is what is said to one question.
type reply struct {
	code    dnsmessage.RCode
	address [4]byte // for code 0
	found   bool    // address is one
	why     string  // of a denial, for clients that ask for such words (RFC 8914)
}

// answer returns the answer to a message, nil for what is no question.
func (r *resolver) answer(query []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil || head.Response {
		return nil
	}
	if head.OpCode != 0 {
		return pack(head, nil, reply{code: dnsmessage.RCodeNotImplemented}, false)
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return pack(head, nil, reply{code: dnsmessage.RCodeFormatError}, false)
	}
	extended, err := hasEDNS(&p)
	if err != nil {
		return pack(head, nil, reply{code: dnsmessage.RCodeFormatError}, false)
	}
	return pack(head, &questions[0], r.resolve(questions[0]), extended)
}

var errNotAQuestion = errors.New("capture: a question holds an answer")

// hasEDNS reports whether a question has the record that lets an answer have one.
// Every other record in a question is an error.
func hasEDNS(p *dnsmessage.Parser) (bool, error) {
	if _, err := p.AnswerHeader(); err != dnsmessage.ErrSectionDone {
		return false, errNotAQuestion
	}
	if _, err := p.AuthorityHeader(); err != dnsmessage.ErrSectionDone {
		return false, errNotAQuestion
	}
	found := false
	for range 2 { // EDNS, and a signature at the most
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return found, nil
		}
		if err != nil {
			return false, err
		}
		found = found || h.Type == dnsmessage.TypeOPT
		if err := p.SkipAdditional(); err != nil {
			return false, err
		}
	}
	if _, err := p.AdditionalHeader(); err != dnsmessage.ErrSectionDone {
		return false, errNotAQuestion
	}
	return found, nil
}

// resolve decides. What is denied does not exist: it is the one answer after which
// every client stops at once. Others (REFUSED, SERVFAIL) are asked anew, of the
// next server or of this one, and some are waited out.
func (r *resolver) resolve(q dnsmessage.Question) reply {
	if q.Class != dnsmessage.ClassINET {
		return reply{code: dnsmessage.RCodeNotImplemented}
	}
	name, proper := hostname(q.Name.String())
	switch {
	case !proper:
		return r.deny(strconv.QuoteToASCII(q.Name.String()), "it is not a host name")
	case name == "localhost" || strings.HasSuffix(name, ".localhost"): // RFC 6761
		return reply{address: [4]byte{127, 0, 0, 1}, found: q.Type == dnsmessage.TypeA}
	case strings.HasSuffix(name, ".arpa"): // the name of an address: the question reveals nothing
		return reply{code: dnsmessage.RCodeNameError}
	case !r.allowed(name, 0):
		why := "no rule allows it"
		if r.why != nil {
			why = r.why(name, 0)
		}
		return r.deny(name, why)
	case q.Type != dnsmessage.TypeA:
		return reply{}
	}
	a, ok := r.names.address(name)
	if !ok {
		return r.deny(name, "the run has asked for too many names")
	}
	return reply{address: a.As4(), found: true}
}

func (r *resolver) deny(host, why string) reply {
	r.note(denial{protocol: "dns", host: host, why: why})
	return reply{code: dnsmessage.RCodeNameError, why: "denied by the sandbox: " + why}
}

// hostname returns a name as rules have it, without case and last dot. A name
// that is not made of letters, digits, hyphens and underscores is none, nor is one
// that something may read as an address.
func hostname(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", false
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	last := labels[len(labels)-1]
	// 127.1, 0x7f.0.0.1 and 2130706433 are addresses to inet_aton(3).
	return s, !strings.HasPrefix(last, "0x") && strings.Trim(last, "0123456789") != ""
}

// pack writes an answer. It has room for whatever it writes: a question, an
// address and some words.
func pack(query dnsmessage.Header, q *dnsmessage.Question, r reply, extended bool) []byte {
	b := dnsmessage.NewBuilder(make([]byte, 0, 512), dnsmessage.Header{
		ID: query.ID, Response: true, OpCode: query.OpCode, RecursionDesired: query.RecursionDesired,
		RecursionAvailable: true, RCode: r.code,
	})
	b.EnableCompression()
	if q != nil {
		if b.StartQuestions() != nil || b.Question(*q) != nil || b.StartAnswers() != nil {
			return nil
		}
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: lifetime}
		if r.found && b.AResource(head, dnsmessage.AResource{A: r.address}) != nil {
			return nil
		}
	}
	if extended && packEDNS(&b, r.why) != nil {
		return nil
	}
	message, err := b.Finish()
	if err != nil {
		return nil
	}
	return message
}

func packEDNS(b *dnsmessage.Builder, why string) error {
	if err := b.StartAdditionals(); err != nil {
		return err
	}
	var head dnsmessage.ResourceHeader
	if err := head.SetEDNS0(ednsSize, dnsmessage.RCodeSuccess, false); err != nil {
		return err
	}
	var opt dnsmessage.OPTResource
	if why != "" {
		opt.Options = []dnsmessage.Option{{Code: edeCode, Data: append([]byte{0, edeDenied}, why...)}}
	}
	return b.OPTResource(head, opt)
}
