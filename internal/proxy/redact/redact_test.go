package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-dev/holdfast/internal/fixture"
)

const (
	testSecret      = `s3cr3t/+"key<&>=value-of-the-user`
	testPlaceholder = "holdfast-testtesttesttesttesttest"
)

// secrets are those of a redactor.
type secrets []Secret

func (list secrets) redact() *Redactor { return New(list) }

func testCredentials() secrets {
	return secrets{{func() string { return testSecret }, testPlaceholder}}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestASecretIsReplacedInEverySpellingThatServersGiveIt(t *testing.T) {
	marshalled, _ := json.Marshal(map[string]string{"token": testSecret})
	for name, text := range map[string]string{
		"as it is":                      "a " + testSecret + " b",
		"twice in a row":                testSecret + testSecret,
		"in a query":                    url.QueryEscape(testSecret),
		"in a path":                     url.PathEscape(testSecret),
		"with lower-case escapes":       fixture.LowerEscapes(url.QueryEscape(testSecret)),
		"in JSON":                       string(marshalled),
		"in JSON with slashes escaped":  strings.ReplaceAll(string(marshalled), "/", `\/`),
		"in base64":                     base64.StdEncoding.EncodeToString([]byte(testSecret)),
		"in base64 with one before":     base64.StdEncoding.EncodeToString([]byte(":" + testSecret)),
		"in base64 with two before":     base64.URLEncoding.EncodeToString([]byte("u:" + testSecret + "more")),
		"in base64 with a user's name":  base64.StdEncoding.EncodeToString([]byte("someone:" + testSecret)),
		"in HTML":                       "<b>s3cr3t/+&#34;key&lt;&amp;&gt;=value-of-the-user</b>",
		"in UTF-16":                     strings.Join(strings.Split(testSecret, ""), "\x00") + "\x00",
		"after a beginning that breaks": "s3cr3t/s3cr3t" + testSecret,
	} {
		got := testCredentials().redact().Text(text)
		if !strings.Contains(got, testPlaceholder) || testCredentials().redact().Text(got) != got {
			t.Errorf("%s: %q", name, got)
		}
		for _, s := range []string{"key<", "value-of-the-user", "v\x00a\x00l\x00u\x00e"} {
			if strings.Contains(got, s) {
				t.Errorf("%s: %q is left of it: %q", name, s, got)
			}
		}
	}
}

// entities are those that libraries for HTML and XML write, PHP's htmlentities with ENT_HTML5 for each sign that has one.
// otherEntities are further names of the same signs.
var (
	entities = map[string]string{"&": "&amp;", "<": "&lt;", ">": "&gt;", `"`: "&quot;", "'": "&apos;", "/": "&sol;", "+": "&plus;", "=": "&equals;",
		"!": "&excl;", "#": "&num;", "$": "&dollar;", "%": "&percnt;", "(": "&lpar;", ")": "&rpar;", "*": "&ast;", ",": "&comma;", ".": "&period;", ":": "&colon;", ";": "&semi;",
		"?": "&quest;", "@": "&commat;", "[": "&lbrack;", `\`: "&bsol;", "]": "&rbrack;", "^": "&Hat;", "_": "&lowbar;", "`": "&grave;", "{": "&lbrace;", "|": "&vert;", "}": "&rbrace;"}
	otherEntities = map[string]string{"*": "&midast;", "[": "&lsqb;", "]": "&rsqb;", "_": "&UnderBar;", "{": "&lcub;", "|": "&verbar;", "}": "&rcub;"}
)

// TestASecretIsReplacedWhoseSignsHaveNames: each sign of ASCII that has one in HTML.
func TestASecretIsReplacedWhoseSignsHaveNames(t *testing.T) {
	for _, table := range []map[string]string{entities, otherEntities} {
		for char, e := range table {
			if got := html.UnescapeString(e); got != char && char != " " {
				t.Errorf("%s is %q, and not %q", e, got, char)
			}
		}
	}
	for c := byte('!'); c < 0x7f; c++ {
		char := string(c)
		named := entities[char]
		if alphanumeric(c) || named == "" && strings.Contains("-~", char) {
			continue
		}
		secret := "abcd" + char + "efgh"
		r := New([]Secret{{func() string { return secret }, testPlaceholder}})
		for _, e := range []string{named, otherEntities[char]} {
			if got := r.Text("abcd" + e + "efgh"); e != "" && got != testPlaceholder || named == "" {
				t.Errorf("%s as %q: %s", secret, e, got)
			}
		}
	}
}

func TestATextWithoutASecretIsNotChanged(t *testing.T) {
	text := strings.Repeat("s3cr3t/+ nearly s3cr3t/+\"key<&>=value-of-the-use r\x00\xff", 2000)
	body := testCredentials().redact().stream(io.NopCloser(strings.NewReader(text)), func() {})
	if readAll(t, body) != text {
		t.Error("the body is another one")
	}
}

func TestASecretThatStraddlesReadsIsReplaced(t *testing.T) {
	text := strings.Repeat("x", chunk-5) + testSecret + strings.Repeat("y", 100) + testSecret
	want := strings.ReplaceAll(text, testSecret, testPlaceholder)
	for name, r := range map[string]io.Reader{
		"in one": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"in halves": iotest.HalfReader(strings.NewReader(text)), "with the error at the end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		ended := false
		body := testCredentials().redact().stream(io.NopCloser(r), func() { ended = true })
		if got := readAll(t, body); got != want || !ended {
			t.Errorf("%s: the body is another one, end seen: %v", name, ended)
		}
	}
}

func TestWhatMayBecomeASecretIsNotPassedOnWhenTheBodyBreaksOff(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("a line\n\ntext "+testSecret[:20]), iotest.ErrReader(errors.New("cut")))
	got, err := io.ReadAll(testCredentials().redact().stream(io.NopCloser(broken), func() {}))
	if string(got) != "a line\n\n" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAStreamOfEventsIsNotHeldBack(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	body := testCredentials().redact().stream(r, func() {})
	go w.Write([]byte("data: one\n\n"))
	b := make([]byte, 100)
	if n, err := body.Read(b); string(b[:n]) != "data: one\n\n" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
	}
}

type duplex struct {
	io.Reader
	io.Writer
}

func (duplex) Close() error { return nil }

// framedText is a WebSocket's message.
func framedText(text string) string {
	head := []byte{0x81, byte(len(text))}
	switch {
	case len(text) >= 1<<16:
		head = binary.BigEndian.AppendUint64([]byte{0x81, 127}, uint64(len(text)))
	case len(text) > 125:
		head = binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(text)))
	}
	return string(head) + text
}

// TestASecretInAWebSocketIsMasked, and its frames keep their lengths.
func TestASecretInAWebSocketIsMasked(t *testing.T) {
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"in one": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader,
	} {
		before := framedText("hello")
		for _, text := range []string{framedText("it is " + testSecret), "\x01\x05" + testSecret[:5] + testSecret[5:], "\x01\x06hello " + testSecret + " and no frame"} {
			w := testCredentials().redact().watch(duplex{wrap(strings.NewReader(before + text)), io.Discard})
			got, err := io.ReadAll(w)
			if want := strings.ReplaceAll(before+text, testSecret, testPlaceholder); string(got) != want || err != nil {
				t.Errorf("%s: %q and not %q, %v", name, got, want, err)
			}
		}
		plain := framedText("a") + framedText("") + framedText(strings.Repeat("frame s3cr s3cr3t/+\"k s", 4000)) + framedText(strings.Repeat("b", 300)) + "\x89\x80mask"
		w := testCredentials().redact().watch(duplex{wrap(strings.NewReader(plain)), io.Discard})
		if got, err := io.ReadAll(w); string(got) != plain || err != nil {
			t.Errorf("%s: a harmless stream is another one, %v", name, err)
		}
	}
}

// TestAShortSecretIsNotPassedOnToItsLastLetter: what a server echoes may arrive in pieces, a long time apart.
func TestAShortSecretIsNotPassedOnToItsLastLetter(t *testing.T) {
	const secret = "8letters"
	by := secrets{{func() string { return secret }, testPlaceholder}}.redact()
	for at := range secret {
		r, w := io.Pipe()
		src := by.watch(duplex{r, io.Discard})
		go io.WriteString(w, "\x81\x08"+secret[:at])
		got := make([]byte, 100)
		want := 2 + at
		if 2*at > len(secret) {
			want = 2
		}
		n, err := io.ReadAtLeast(src, got, want)
		if err != nil || strings.Contains(string(got[:n]), secret[:len(secret)/2+1]) {
			t.Errorf("cut at %d: the tool reads %q, %v", at, got[:n], err)
		}
		go func() { io.WriteString(w, secret[at:]+"."); w.Close() }()
		rest, err := io.ReadAll(src)
		if all := secret[:n-2] + testPlaceholder[n-2:len(secret)] + "."; string(got[2:n])+string(rest) != all || err != nil {
			t.Errorf("cut at %d: the tool reads %q and %q, %v", at, got[:n], rest, err)
		}
	}
}

// TestWhatIsHeldBackTellsNothingOfTheSecret: a tool that has its guesses echoed, and
// ends neither the line nor the message, must not see by what comes back how far they
// are right. Nor may an echo that breaks off tell it.
func TestWhatIsHeldBackTellsNothingOfTheSecret(t *testing.T) {
	by := testCredentials().redact()
	passed := func(watch bool, first, more string, end error) string {
		r, w := io.Pipe()
		var src io.Reader = by.stream(r, func() {})
		if watch {
			src = by.watch(struct {
				io.Reader
				io.WriteCloser
			}{r, nopWriter{}})
		}
		go func() {
			io.WriteString(w, first)
			io.WriteString(w, more)
			w.CloseWithError(end)
		}()
		got := make([]byte, 4096)
		n, _ := src.Read(got)
		if end != nil {
			rest, _ := io.ReadAll(src)
			n += copy(got[n:], rest)
		}
		return string(got[:n])
	}
	for _, spelled := range []string{testSecret, hex.EncodeToString([]byte(testSecret)), base64.RawStdEncoding.EncodeToString([]byte(testSecret))[:30]} {
		for n := 1; n < len(spelled)/2; n++ {
			right, wrong := spelled[:n], spelled[:n-1]+"\x7f"
			for _, end := range []error{nil, errors.New("cut")} {
				a, b := passed(false, "line\nx"+right, "", end), passed(false, "line\nx"+wrong, "", end)
				if len(a) != len(b) {
					t.Fatalf("of a body with %q: %q, and with %q: %q (%v)", right, a, wrong, b, end)
				}
				a, b = passed(true, framedText("x"+right), "", end), passed(true, framedText("x"+wrong), "", end)
				if len(a) != len(b) {
					t.Fatalf("of a message with %q: %q, and with %q: %q (%v)", right, a, wrong, b, end)
				}
			}
		}
	}
}

type nopWriter struct{ io.Writer }

func (nopWriter) Close() error { return nil }

// TestCompressedMessagesAreRefused: each would have to be unpacked by itself.
func TestCompressedMessagesAreRefused(t *testing.T) {
	res := &http.Response{StatusCode: 200, Header: http.Header{"Grpc-Encoding": {"gzip"}}, Body: http.NoBody, Request: &http.Request{Method: "POST"}}
	res.Body = io.NopCloser(strings.NewReader("x"))
	if err := testCredentials().redact().Response(res); !errors.Is(err, ErrEncoding) {
		t.Errorf("messages that are compressed: %v", err)
	}
}

// TestASecretIsReplacedAsLibrariesEscapeIt: the signs are those of passwords and of
// base64.
func TestASecretIsReplacedAsLibrariesEscapeIt(t *testing.T) {
	const secret = `p!a*b/c+d'e"f&g=h`
	by := secrets{{func() string { return secret }, testPlaceholder}}.redact()
	for library, text := range map[string]string{
		"JavaScript's encodeURIComponent": `p!a*b%2Fc%2Bd'e%22f%26g%3Dh`,
		"JavaScript's encodeURI":          `p!a*b/c+d'e%22f&g=h`,
		"JavaScript's URLSearchParams":    `p%21a*b%2Fc%2Bd%27e%22f%26g%3Dh`,
		"Python's quote":                  `p%21a%2Ab/c%2Bd%27e%22f%26g%3Dh`,
		"Python's quote in lower case":    `p%21a%2ab/c%2bd%27e%22f%26g%3dh`,
		"Python's html.escape":            `p!a*b/c+d&#x27;e&quot;f&amp;g=h`,
		"PHP's htmlspecialchars":          `p!a*b/c+d&#039;e&quot;f&amp;g=h`,
		"Handlebars":                      `p!a*b/c+d&#x27;e&quot;f&amp;g&#x3D;h`,
		"Mustache":                        `p!a*b&#x2F;c+d&#39;e&quot;f&amp;g&#x3D;h`,
		"Go's html/template":              `p!a*b/c&#43;d&#39;e&#34;f&amp;g=h`,
		"an XML text":                     `p!a*b/c+d'e"f&amp;g=h`,
		".NET's JSON":                     `p!a*b/c\u002Bd\u0027e\u0022f\u0026g=h`,
		"Gson":                            `p!a*b/c+d\u0027e\"f\u0026g\u003dh`,
		"PHP's JSON":                      `p!a*b\/c+d'e\"f&g=h`,
		"Go's %q":                         `p!a*b/c+d'e\"f&g=h`,
	} {
		if got := by.Text("<" + text + ">"); got != "<"+testPlaceholder+">" {
			t.Errorf("%s: %q", library, got)
		}
	}
}

// FuzzRedact has bodies cut in pieces anywhere: the result is that of the whole.
func FuzzRedact(f *testing.F) {
	f.Add([]byte("a"+testSecret+"b"), uint8(3))
	f.Add([]byte(base64.StdEncoding.EncodeToString([]byte("u:"+testSecret))), uint8(7))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		by := testCredentials().redact()
		text = bytes.ReplaceAll(text, []byte("$"), []byte(testSecret))
		body := by.stream(io.NopCloser(&pieces{text, int(piece) + 1}), func() {})
		got, err := io.ReadAll(body)
		if err != nil || bytes.Contains(got, []byte(testSecret)) {
			t.Fatalf("%q, %v", got, err)
		}
		if !bytes.Contains(text, []byte(testPlaceholder)) && len(text) < chunk && piece == 255 && string(got) != by.Text(string(text)) {
			t.Fatalf("in pieces %q, as a whole %q", got, by.Text(string(text)))
		}
	})
}

type pieces struct {
	text []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b, p.text[:min(len(p.text), p.n)])
	if p.text = p.text[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestASecretWithinASecretLeavesNothingOfIt: in whatever pieces the longer one
// comes, its part that is another secret is not replaced before the rest is known.
func TestASecretWithinASecretLeavesNothingOfIt(t *testing.T) {
	const part, begins, around = "hunter2-hunter2", "hunter2-hunter2-and-the-rest", "before-hunter2-hunter2-after"
	var all secrets
	for _, s := range []string{part, begins, around} {
		all = append(all, Secret{func() string { return s }, strings.Repeat("P", len(s))})
	}
	by := all.redact()
	for _, text := range []string{part, begins, around} {
		for cut := range len(text) + 1 {
			src := io.MultiReader(strings.NewReader("x "+text[:cut]), strings.NewReader(text[cut:]+" y"))
			if got := readAll(t, by.stream(io.NopCloser(src), func() {})); got != "x "+strings.Repeat("P", len(text))+" y" {
				t.Errorf("%q cut at %d: %q", text, cut, got)
			}
		}
	}
}

// TestASecretInAnotherCaseIsReplaced: a server that lowers what it echoes tells most of it.
// A text that has the letters in another order stays.
func TestASecretInAnotherCaseIsReplaced(t *testing.T) {
	by := testCredentials().redact()
	for _, text := range []string{strings.ToLower(testSecret), strings.ToUpper(testSecret), strings.ToLower(url.QueryEscape(testSecret))} {
		if got := by.Text("<" + text + ">"); got != "<"+testPlaceholder+">" {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if other := strings.ToUpper(testSecret[1:]); by.Text(other) != other {
		t.Errorf("%q becomes %q", other, by.Text(other))
	}
}
