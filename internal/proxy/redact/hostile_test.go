package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// repeated is a text and then a piece over and over, up to a length.
type repeated struct {
	first, piece string
	left         int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.first)
	r.first = r.first[n:]
	for n < len(p) {
		n += copy(p[n:], r.piece)
	}
	n = min(n, r.left)
	r.left -= n
	return n, nil
}

// hostile are what a server that knows the secret sends after the beginning of a writing: its end never comes.
func hostile() map[string]repeated {
	digits := base64.StdEncoding.EncodeToString([]byte(testSecret))
	return map[string]repeated{
		"line ends after three quarters of base64": {first: digits[:len(digits)*3/4], piece: "\n"},
		"the two line ends in turn":                {first: digits[:len(digits)*3/4], piece: "\r"},
		"soft line ends":                           {first: testSecret[:len(testSecret)*3/4], piece: "=\n"},
		"escaped line ends":                        {first: digits[:len(digits)*3/4], piece: `\r\n`},
		"the secret but for its last byte":         {piece: testSecret[:len(testSecret)-1]},
		"digits with line ends between":            {piece: strings.Join(strings.Split(digits[:len(digits)-1], ""), "\r\n")},
		"signs by which escapes begin":             {piece: `&%\=`},
	}
}

// TestWhatIsHeldIsBoundedByTheLongestWriting, of a body and a WebSocket, whatever a server sends: its memory and its time.
func TestWhatIsHeldIsBoundedByTheLongestWriting(t *testing.T) {
	for name, text := range hostile() {
		text.left = 2 << 20
		r := testCredentials().redact()
		s := r.stream(io.NopCloser(&text), func() {})
		got, most := 0, 0
		for p := make([]byte, 4096); ; {
			n, err := s.Read(p)
			if got += n; err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(name, err)
			}
			most = max(most, int(s.scan.at)-got)
		}
		if most > r.known().longest+chunk || cap(s.text) > 4*(r.known().longest+chunk) {
			t.Errorf("%s: %d bytes are held, %d of memory", name, most, cap(s.text))
		}
	}
	text := hostile()["line ends after three quarters of base64"]
	text.left = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	io.Copy(io.Discard, testCredentials().redact().watch(duplex{&text, io.Discard}))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 || time.Since(began) > time.Minute {
		t.Errorf("64 MiB took %d bytes of memory and %v", n, time.Since(began))
	}
}

// TestManyWebSocketsTakeLittleMemory: 120 of them, each with a MiB after a writing's beginning, whose server then says nothing.
func TestManyWebSocketsTakeLittleMemory(t *testing.T) {
	r := testCredentials().redact()
	var before, after runtime.MemStats
	r.known()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open []io.Closer
	for range 120 {
		text := hostile()["line ends after three quarters of base64"]
		text.left = 1 << 20
		in, silent := io.Pipe()
		go io.Copy(silent, &text)
		w := r.watch(duplex{in, io.Discard})
		if _, err := io.CopyN(io.Discard, w, 1<<20-int64(r.known().longest)); err != nil {
			t.Fatal(err)
		}
		open = append(open, w, in)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 120*(128<<10) {
		t.Errorf("120 WebSockets hold %d bytes", n)
	}
	for _, c := range open {
		c.Close()
	}
}

// TestStreamsArriveAsTheyCome: texts without line ends, digits, and messages of frameworks with their length before them.
func TestStreamsArriveAsTheyCome(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	r := New([]Secret{{func() string { return secret }, testPlaceholder}})
	for name, piece := range map[string]string{
		"words": "some words ", "a word": "word", "a hash and a line end": strings.Repeat("deadbeef", 5) + "\n", "a line": "a line\n",
		"an event": "data: x\n\n", "gRPC": "\x00\x00\x00\x00\x03\x0a\x01s", "Connect": "\x00\x00\x00\x00\x0d{\"text\":\"g\"}",
		"the beginning of the secret": "ghp_", "of its base64": base64.StdEncoding.EncodeToString([]byte(secret))[:8],
	} {
		in, server := io.Pipe()
		s := r.stream(in, func() {})
		began := time.Now()
		for range 10 {
			go io.WriteString(server, piece)
			if _, err := io.ReadFull(s, make([]byte, len(piece))); err != nil {
				t.Fatal(name, err)
			}
		}
		if d := time.Since(began) / 10; d > 10*ticks*tick {
			t.Errorf("%s: each piece comes after %v", name, d)
		}
		server.Close()
	}
}

// TestAGzipFileArrivesAsItIsStored, short or long, and one with a secret does not.
func TestAGzipFileArrivesAsItIsStored(t *testing.T) {
	pack := func(text string, stored bool) []byte {
		var b bytes.Buffer
		level := gzip.BestCompression
		if stored {
			level = gzip.NoCompression
		}
		z, _ := gzip.NewWriterLevel(&b, level)
		z.Name = "file"
		io.WriteString(z, text)
		z.Close()
		return b.Bytes()
	}
	fetch := func(packed []byte, length int64, contentType string) (*http.Response, []byte, error) {
		res := &http.Response{StatusCode: 200, ContentLength: length, Header: http.Header{"Content-Encoding": {"gzip"}, "Content-Type": {contentType}},
			Body: io.NopCloser(bytes.NewReader(packed)), Request: &http.Request{Method: "GET"}}
		if err := testCredentials().redact().Response(res); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		return res, b, err
	}
	random := strings.Repeat("0123456789 some text that is compressed\n", 50_000)
	for _, text := range []string{"", "short", random, strings.Repeat("\x00", 1<<20)} {
		for _, stored := range []bool{false, true} {
			packed := pack(text, stored)
			for _, length := range []int64{-1, int64(len(packed))} {
				res, got, err := fetch(packed, length, "application/json")
				if err != nil || !bytes.Equal(got, packed) || res.Header.Get("Content-Encoding") != "gzip" || res.ContentLength != length {
					t.Errorf("%d bytes, stored %v, of length %d: %d of %d bytes arrive, %v", len(text), stored, length, len(got), len(packed), err)
				}
			}
			packed = pack(text+testSecret+random, stored)
			_, got, err := fetch(packed, -1, "application/json")
			var out []byte
			if z, bad := gzip.NewReader(bytes.NewReader(got)); bad == nil {
				out, _ = io.ReadAll(z)
			}
			if !errors.Is(err, errPacked) || bytes.Contains(out, []byte(testSecret[:8])) {
				t.Errorf("%d bytes and a secret, stored %v: %d bytes arrive, %v", len(text), stored, len(got), err)
			}
		}
	}
	packed := pack("a "+testSecret, false)
	for kind, length := range map[string]int64{"text/plain": int64(len(packed)), "text/event-stream": -1} {
		if res, got, err := fetch(packed, length, kind); string(got) != "a "+testPlaceholder || err != nil || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

// FuzzWritings holds the scanner against a plain search for each writing.
func FuzzWritings(f *testing.F) {
	list := writingsOf(testSecret)
	f.Add("a$b", uint16(0), uint8(3))
	f.Add("s3cr3t/+$$s3cr3t", uint16(5), uint8(1))
	f.Fuzz(func(t *testing.T, text string, which uint16, each uint8) {
		text = strings.ReplaceAll(text, "$", list[int(which)%len(list)])
		fold := func(s string) string {
			b := []byte(s)
			for i := range b {
				b[i] = folded[b[i]]
			}
			return string(b)
		}
		has := func(text string) bool {
			for _, w := range list {
				if strings.Contains(fold(text), fold(w)) {
					return true
				}
			}
			return false
		}
		body := testCredentials().redact().stream(io.NopCloser(&pieces{[]byte(text), int(each) + 1}), func() {})
		got, err := io.ReadAll(body)
		if err != nil || len(got) != len(text) || has(string(got)) {
			t.Fatalf("%q becomes %q, %v", text, got, err)
		}
		if plain := !strings.ContainsAny(text, "%\\&=\r\n"); plain && !has(text) && string(got) != text {
			t.Fatalf("%q is changed to %q", text, got)
		}
	})
}
