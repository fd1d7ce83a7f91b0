package capture

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// newResolver allows the names that end in "allowed.test".
func newResolver() (*resolver, *[]denial) {
	told := &[]denial{}
	return &resolver{
		allowed: func(host string, port uint16) bool { return port == 0 && strings.HasSuffix(host, "allowed.test") },
		names:   newNames(testNet, 3),
		note:    func(d denial) { *told = append(*told, d) },
	}, told
}

// question makes a question as clients do.
func question(t testing.TB, name string, kind dnsmessage.Type, edns bool) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0x1234, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	if edns {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(4096, 0, true); err != nil {
			t.Fatal(err)
		}
		m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpack(t testing.TB, b []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return m
}

func TestQuestionsAreAnsweredByThePolicyAlone(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 60)+".", 3) + "denied.test."
	for _, c := range []struct {
		says string
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string // the address, if there is one
		told string // as what a denial is noted
	}{
		{"an allowed name has an address", "allowed.test.", dnsmessage.TypeA, 0, "198.18.0.2", ""},
		{"without regard to case", "AlloWed.TEST.", dnsmessage.TypeA, 0, "198.18.0.2", ""},
		{"another name has another", "www.allowed.test.", dnsmessage.TypeA, 0, "198.18.0.3", ""},
		{"there are no addresses of IPv6", "allowed.test.", dnsmessage.TypeAAAA, 0, "", ""},
		{"nor other records", "allowed.test.", dnsmessage.TypeTXT, 0, "", ""},
		{"nor that of HTTPS", "allowed.test.", 65, 0, "", ""},
		{"a denied name does not exist", "denied.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", "denied.test"},
		{"in any respect", "text.denied.test.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, "", "text.denied.test"},
		{"a long one too", long, dnsmessage.TypeA, dnsmessage.RCodeNameError, "", strings.TrimSuffix(long, ".")},
		{"a name's end is not its beginning", "allowed.test.evil.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", "allowed.test.evil"},
		{"an address is no name", "10.0.0.1.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", `"10.0.0.1."`},
		{"nor what may be read as one", "0x7f.0.0.0x1.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", `"0x7f.0.0.0x1."`},
		{"nor is the root", ".", dnsmessage.TypeNS, dnsmessage.RCodeNameError, "", `"."`},
		{"nor what has a space", "a b.allowed.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", `"a b.allowed.test."`},
		{"nor what would break a line", "a\n\x1b[2J.allowed.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", `"a\n\x1b[2J.allowed.test."`},
		{"localhost is", "localhost.", dnsmessage.TypeA, 0, "127.0.0.1", ""},
		{"who has an address is not known", "1.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, "", ""},
	} {
		r, told := newResolver()
		r.answer(question(t, "allowed.test.", dnsmessage.TypeA, false)) // has the first address
		for _, edns := range []bool{false, true} {
			*told = nil
			m := unpack(t, r.answer(question(t, c.name, c.kind, edns)))
			if m.ID != 0x1234 || !m.Response || m.RCode != c.code || len(m.Questions) != 1 || m.Questions[0].Name.String() != c.name || len(m.Additionals) == 0 == edns {
				t.Errorf("%s: %+v", c.says, m)
			}
			if got := addressOf(t, m); got != c.want {
				t.Errorf("%s: %q", c.says, got)
			}
			if c.told == "" && len(*told) > 0 || c.told != "" && (len(*told) != 1 || (*told)[0].host != c.told) {
				t.Errorf("%s: noted %+v", c.says, *told)
			}
		}
	}
}

func addressOf(t *testing.T, m dnsmessage.Message) string {
	t.Helper()
	if len(m.Answers) == 0 {
		return ""
	}
	a, ok := m.Answers[0].Body.(*dnsmessage.AResource)
	if !ok || len(m.Answers) != 1 || m.Answers[0].Header.Name != m.Questions[0].Name || m.Answers[0].Header.TTL == 0 {
		t.Fatalf("%+v", m.Answers)
	}
	return net.IP(a.A[:]).String()
}

func TestDenialSaysWhyToWhoCanReadIt(t *testing.T) {
	r, _ := newResolver()
	m := unpack(t, r.answer(question(t, "denied.test.", dnsmessage.TypeA, true)))
	o := m.Additionals[0].Body.(*dnsmessage.OPTResource).Options
	if len(o) != 1 || o[0].Code != 15 || string(o[0].Data) != "\x00\x0fdenied by the sandbox: no rule allows it" {
		t.Errorf("%+v", o)
	}
}

func TestDenialSaysWhatTheGateSays(t *testing.T) {
	r, told := newResolver()
	r.why = func(host string, port uint16) string { return "a rule names " + host }
	m := unpack(t, r.answer(question(t, "denied.test.", dnsmessage.TypeA, true)))
	o := m.Additionals[0].Body.(*dnsmessage.OPTResource).Options
	if len(o) != 1 || string(o[0].Data[2:]) != "denied by the sandbox: a rule names denied.test" || len(*told) != 1 || (*told)[0].why != "a rule names denied.test" {
		t.Errorf("%+v %+v", o, *told)
	}
}

func TestWhatIsNoQuestionIsNotResolved(t *testing.T) {
	good := question(t, "allowed.test.", dnsmessage.TypeA, true)
	change := func(f func(m *dnsmessage.Message)) []byte {
		m := unpack(t, good)
		f(&m)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	answer := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("a."), Class: 1}, Body: &dnsmessage.TXTResource{TXT: []string{"x"}}}
	const silent = 100
	for says, c := range map[string]struct {
		query []byte
		want  dnsmessage.RCode
	}{
		"nothing":                      {nil, silent},
		"half a header":                {good[:11], silent},
		"an answer":                    {change(func(m *dnsmessage.Message) { m.Response = true }), silent},
		"an update":                    {change(func(m *dnsmessage.Message) { m.OpCode = 5 }), dnsmessage.RCodeNotImplemented},
		"no question":                  {change(func(m *dnsmessage.Message) { m.Questions = nil }), dnsmessage.RCodeFormatError},
		"two questions":                {change(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), dnsmessage.RCodeFormatError},
		"a question cut short":         {good[:20], dnsmessage.RCodeFormatError},
		"a question with an answer":    {change(func(m *dnsmessage.Message) { m.Answers = []dnsmessage.Resource{answer} }), dnsmessage.RCodeFormatError},
		"a question with an authority": {change(func(m *dnsmessage.Message) { m.Authorities = []dnsmessage.Resource{answer} }), dnsmessage.RCodeFormatError},
		"a question with three more": {change(func(m *dnsmessage.Message) {
			m.Additionals = []dnsmessage.Resource{answer, answer, answer}
		}), dnsmessage.RCodeFormatError},
		"another class": {change(func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), dnsmessage.RCodeNotImplemented},
	} {
		r, _ := newResolver()
		r.allowed = func(string, uint16) bool { t.Errorf("%s: the policy was asked", says); return true }
		b := r.answer(c.query)
		if c.want == silent {
			if b != nil {
				t.Errorf("%s: answered by %x", says, b)
			}
			continue
		}
		if m := unpack(t, b); m.RCode != c.want || len(m.Answers) > 0 {
			t.Errorf("%s: %+v", says, m)
		}
	}
}

func TestNamesThatFindNoRoomAreDenied(t *testing.T) {
	r, told := newResolver()
	for _, name := range []string{"a", "b", "c", "d", "a"} {
		m := unpack(t, r.answer(question(t, name+".allowed.test.", dnsmessage.TypeA, false)))
		if full := name == "d"; full != (m.RCode == dnsmessage.RCodeNameError) || full == (len(m.Answers) == 1) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if len(*told) != 1 || (*told)[0].why != "the run has asked for too many names" {
		t.Errorf("%+v", *told)
	}
}

func TestSocketsOfAToolsLoopbackAreAnswered(t *testing.T) {
	r, _ := newResolver()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			r.serveStream(c)
		}
	}()
	p, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); r.serveDatagrams(p) }()
	q := question(t, "allowed.test.", dnsmessage.TypeA, false)

	c, err := net.Dial("udp4", p.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("noise"))
	c.Write(q)
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil || addressOf(t, unpack(t, b[:n])) != "198.18.0.2" {
		t.Errorf("%x, %v", b[:n], err)
	}
	p.Close()
	<-ended

	s, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	for range 2 { // a stream has any number of questions
		s.Write(framed)
		if _, err := io.ReadFull(s, b[:2]); err != nil {
			t.Fatal(err)
		}
		n := int(binary.BigEndian.Uint16(b))
		if _, err := io.ReadFull(s, b[:n]); err != nil || addressOf(t, unpack(t, b[:n])) != "198.18.0.2" {
			t.Errorf("%x, %v", b[:n], err)
		}
	}
	s.Write([]byte{0xff, 0xff}) // more than a question has
	if _, err := s.Read(b); err != io.EOF {
		t.Errorf("after a length of 65535: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(question(f, "allowed.test.", dnsmessage.TypeA, true))
	f.Add(question(f, "denied.test.", dnsmessage.TypeTXT, false))
	f.Add([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0xc0, 12, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, query []byte) {
		r, told := newResolver()
		b := r.answer(query)
		if b == nil {
			return
		}
		m := unpack(t, b)
		if len(b) > 512 || !m.Response || m.ID != binary.BigEndian.Uint16(query) {
			t.Errorf("%x is answered by %x", query, b)
		}
		if len(m.Answers) > 0 {
			name, ok := hostname(m.Questions[0].Name.String())
			if !ok || m.RCode != 0 || !strings.HasSuffix(name, "allowed.test") && !strings.HasSuffix(name, "localhost") {
				t.Errorf("%q has the answer %+v", name, m)
			}
		}
		for _, d := range *told {
			if strings.Trim(d.host, "\x20!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
				t.Errorf("%q is told of", d.host)
			}
		}
	})
}
