package egress

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A framer is a server's connection of HTTP/2 of which the test says what becomes of
// it. It has read one request's header.
type framer struct {
	*http2.Framer
	conn  net.Conn
	table *hpack.Encoder
	block bytes.Buffer
	id    uint32
	auth  string
}

// head sends a response's header.
func (f *framer) head(id uint32, end bool, status string, fields ...string) {
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(status, fields...), EndHeaders: true, EndStream: end})
}

func (f *framer) fields(status string, fields ...string) []byte {
	f.block.Reset()
	f.table.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	for i := 0; i+1 < len(fields); i += 2 {
		f.table.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return f.block.Bytes()
}

// oddly are servers of HTTP/2 that do what none should, to one request.
var oddly = map[string]func(f *framer){
	"a body nobody asked for":  func(f *framer) { f.WriteData(f.id+2, true, []byte("JUNK "+f.auth)) },
	"a body of the server's":   func(f *framer) { f.WriteData(2, true, []byte("JUNK "+f.auth)) },
	"a body before its header": func(f *framer) { f.WriteData(f.id, true, []byte("JUNK "+f.auth)) },
	"a body after a hint":      func(f *framer) { f.head(f.id, false, "103"); f.WriteData(f.id, true, []byte("JUNK "+f.auth)) },
	"a body after an odd hint": func(f *framer) { f.head(f.id, false, "+103"); f.WriteData(f.id, true, []byte("JUNK "+f.auth)) },
	"a body beyond its end":    func(f *framer) { f.head(f.id, true, "200"); f.WriteData(f.id, true, []byte("JUNK "+f.auth)) },
	"a body in answer to HEAD": func(f *framer) { f.head(f.id, false, "200"); f.WriteData(f.id, true, []byte("JUNK "+f.auth)) },
	"a frame of an unknown kind": func(f *framer) {
		f.WriteRawFrame(0x42, 0, f.id, []byte("JUNK "+f.auth))
		f.head(f.id, true, "200")
	},
	"a priority": func(f *framer) { f.WritePriority(f.id, http2.PriorityParam{StreamDep: 9}); f.head(f.id, true, "200") },
	"a push": func(f *framer) {
		f.WritePushPromise(http2.PushPromiseParam{StreamID: f.id, PromiseID: 2, BlockFragment: f.fields("200"), EndHeaders: true})
	},
	"a header nobody asked for": func(f *framer) { f.head(f.id+2, true, "200"); f.head(f.id, true, "200") },
	"a second header":           func(f *framer) { f.head(f.id, true, "200"); f.head(f.id, true, "200", "x-junk", f.auth) },
	"no status":                 func(f *framer) { f.head(f.id, false, "", "x-junk", f.auth); f.WriteData(f.id, true, []byte("JUNK")) },
	"an odd status":             func(f *framer) { f.head(f.id, false, "JUNK "+f.auth); f.WriteData(f.id, true, []byte("JUNK")) },
	"an odd field":              func(f *framer) { f.head(f.id, false, "200", "X JUNK", f.auth); f.WriteData(f.id, true, []byte("JUNK")) },
	"a late pseudo-field": func(f *framer) {
		f.head(f.id, false, "200", "x-junk", f.auth, ":status", "500")
		f.WriteData(f.id, true, []byte("JUNK"))
	},
	"a header that cannot be decoded": func(f *framer) {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: []byte("\xff\xff\xff\xff\xffJUNK"), EndHeaders: true})
	},
	"a header with something within": func(f *framer) {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: f.fields("200")})
		f.WriteRawFrame(0x42, 0, f.id, []byte("JUNK"))
	},
	"a continuation of nothing": func(f *framer) { f.WriteContinuation(f.id, true, f.fields("200")) },
	"a header of a megabyte": func(f *framer) {
		f.head(f.id, false, "200", "x-junk", strings.Repeat("J", 16000))
		for range 100 {
			f.WriteContinuation(f.id, false, bytes.Repeat([]byte("J"), 16000))
		}
	},
	"too much padding": func(f *framer) {
		f.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, f.id, []byte("\xffJUNK"))
	},
	"a window of nothing":       func(f *framer) { f.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, []byte{0, 0, 0, 0}) },
	"a window too large":        func(f *framer) { f.WriteWindowUpdate(0, 1<<31-1); f.WriteWindowUpdate(f.id, 1<<31-1) },
	"an odd setting":            func(f *framer) { f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) },
	"settings that nobody sent": func(f *framer) { f.WriteSettingsAck(); f.WriteSettingsAck(); f.WriteSettingsAck() },
	"a goodbye":                 func(f *framer) { f.WriteGoAway(f.id-1, http2.ErrCodeEnhanceYourCalm, []byte("JUNK "+f.auth)) },
	"a goodbye, and on": func(f *framer) {
		f.WriteGoAway(f.id, http2.ErrCodeNo, []byte(f.auth))
		f.WriteGoAway(1<<30, 0, nil)
		f.head(f.id, true, "200")
	},
	"a reset": func(f *framer) { f.WriteRSTStream(f.id, http2.ErrCode(0xdeadbeef)) },
	"a body after a reset": func(f *framer) {
		f.head(f.id, false, "200")
		f.WriteRSTStream(f.id, 0)
		f.WriteData(f.id, true, []byte("JUNK"))
	},
	"a ping of stream 1":  func(f *framer) { f.WriteRawFrame(http2.FramePing, 0, f.id, []byte("JUNKJUNK")) },
	"a frame that is cut": func(f *framer) { io.WriteString(f.conn, "\x00\x40\x00\x00\x00\x00\x00\x00\x01JUNK") },
	"a frame too large":   func(f *framer) { f.WriteRawFrame(http2.FrameData, 0, f.id, make([]byte, 1<<21)) },
	"HTTP/1":              func(f *framer) { io.WriteString(f.conn, hello) },
	"trailers in disorder": func(f *framer) {
		f.head(f.id, false, "200")
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: f.fields("200"), EndHeaders: true})
	},
}

// oddServer serves HTTP/2: its behaviour to the first request of each connection. It begins
// with begin, or as it should.
func oddServer(t *testing.T, secure *tls.Config, begin, does func(*framer)) (string, <-chan struct{}) {
	secure.NextProtos = []string{"h2"}
	l := tls.NewListener(listen(t), secure)
	did := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, len(preface))); err != nil {
					return
				}
				f := &framer{Framer: http2.NewFramer(c, c), conn: c}
				f.AllowIllegalWrites = true
				f.table = hpack.NewEncoder(&f.block)
				f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
				if begin == nil {
					f.WriteSettings()
				} else {
					begin(f)
				}
				for {
					read, err := f.ReadFrame()
					if err != nil {
						return
					}
					if h, ok := read.(*http2.MetaHeadersFrame); ok && does != nil {
						f.id = h.StreamID
						for _, field := range h.Fields {
							if field.Name == "authorization" {
								f.auth = field.Value
							}
						}
						does(f)
						c.(*tls.Conn).CloseWrite()
						did <- struct{}{}
					}
				}
			}()
		}
	}()
	return l.Addr().String(), did
}

func TestNothingThatAServerOfHTTP2SaysIsLogged(t *testing.T) {
	for name, does := range oddly {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			t.Run(name+"/"+method, func(t *testing.T) { oddlyAsk(t, method, nil, does) })
		}
	}
	for name, begin := range map[string]func(f *framer){
		"a ping":       func(f *framer) { f.WritePing(false, [8]byte{}) },
		"a goodbye":    func(f *framer) { f.WriteGoAway(0, 0, []byte("JUNK")) },
		"a header":     func(f *framer) { f.head(1, true, "200") },
		"no settings":  func(f *framer) { f.WriteRawFrame(0x42, 0, 0, []byte("JUNK")) },
		"HTTP/1":       func(f *framer) { io.WriteString(f.conn, hello) },
		"odd settings": func(f *framer) { f.WriteRawFrame(http2.FrameSettings, 0, 0, []byte("JUNK")) },
	} {
		t.Run("at first "+name, func(t *testing.T) { oddlyAsk(t, "GET", begin, nil) })
	}
}

// oddlyAsk asks such a server for something, with a body that lasts until there is an
// answer: the stream is open as long as that.
func oddlyAsk(t *testing.T, method string, begin, does func(*framer)) {
	logged(t)
	w := newSecureWorld(t, Config{Credentials: bearer()}, nil)
	addr, did := oddServer(t, w.server.TLS.Clone(), begin, does)
	w.put("example.com", 443, addr)
	c := w.inside(true)
	var body io.Reader
	if method == "POST" {
		sent, write := io.Pipe()
		go func() {
			io.WriteString(write, "a body")
			<-did
			write.Close()
		}()
		body = sent
	}
	r, err := http.NewRequest(method, "https://example.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.placeholder)
	if res, err := c.Do(r); err == nil {
		b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		res.Body.Close()
		if err == nil && res.StatusCode == 200 && strings.Contains(string(b), "JUNK") && method == "HEAD" {
			t.Errorf("%q", b)
		}
	}
	c.CloseIdleConnections()
	w.g.Close()
}

func TestFramesThatNobodyKnowsAreLeftOut(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, nil)
	logged(t)
	addr, _ := oddServer(t, w.server.TLS.Clone(), func(f *framer) {
		f.WriteSettings()
		f.WriteRawFrame(0xc, 0, 0, []byte("\x00\x13https://example.com")) // ORIGIN, RFC 8336
		f.WriteRawFrame(0xa, 0, 0, nil)                                   // ALTSVC, RFC 7838
	}, func(f *framer) {
		f.head(f.id, false, "103", "link", "</a>")
		f.WriteRawFrame(0x21, 0xff, f.id, make([]byte, 9000))
		block := bytes.Clone(f.fields("200", "x-long", strings.Repeat("x", 3000), "trailer", "x-end"))
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: block[:10], PadLength: 7, Priority: http2.PriorityParam{StreamDep: 0, Weight: 3}})
		f.WriteContinuation(f.id, false, block[10:20])
		f.WriteContinuation(f.id, true, block[20:])
		f.WriteDataPadded(f.id, false, bytes.Repeat([]byte("hello"), 3000), make([]byte, 50))
		f.WriteRawFrame(0x21, 0xff, f.id, []byte("GREASE"))
		f.WriteData(f.id, false, []byte("!"))
		f.block.Reset()
		f.table.WriteField(hpack.HeaderField{Name: "x-end", Value: f.auth})
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: true})
	})
	w.put("example.com", 443, addr)
	for range 3 {
		res, body := w.do(w.inside(true), "GET", "https://example.com/", nil)
		if res.StatusCode != 200 || body != strings.Repeat("hello", 3000)+"!" || res.Trailer.Get("X-End") != "Bearer "+w.placeholder {
			t.Errorf("%s %d bytes, %v", res.Status, len(body), res.Trailer)
		}
	}
}

// TestGivenUpRequestsLeaveTheConnection: what was on its way to them is no disorder.
func TestGivenUpRequestsLeaveTheConnection(t *testing.T) {
	more := make(chan bool)
	w := newSecureWorld(t, Config{Credentials: bearer()}, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			for range 4 {
				rw.Write(make([]byte, 1<<14))
				rw.(http.Flusher).Flush()
			}
			<-more
			rw.Write(make([]byte, 1<<14))
			return
		}
		fmt.Fprint(rw, r.RemoteAddr)
	})
	c := w.inside(true)
	_, before := w.do(c, "GET", "https://example.com/", nil)
	res, err := c.Get("https://example.com/long")
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(res.Body, make([]byte, 1<<14))
	res.Body.Close()
	close(more)
	for range 3 {
		if _, after := w.do(c, "GET", "https://example.com/", nil); after != before {
			t.Errorf("from %q, before from %q", after, before)
		}
	}
}
