package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-dev/holdfast/internal/fixture"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// inLines puts a text into lines.
func inLines(s string, width int, end string) string {
	var lines []string
	for part := range slices.Chunk([]byte(s), width) {
		lines = append(lines, string(part))
	}
	return strings.Join(lines, end)
}

// twofold are echoes of a secret in one encoding upon another, in broken lines, and in
// encodings of few servers.
func twofold(secret string) map[string]string {
	basic := base64.StdEncoding.EncodeToString([]byte("a:" + secret))
	inJSON, _ := json.Marshal(secret)
	again, _ := json.Marshal(string(inJSON))
	var quoted bytes.Buffer
	w := quotedprintable.NewWriter(&quoted)
	w.Write([]byte(strings.Repeat("x", 60) + secret))
	w.Close()
	list := map[string]string{
		"a URL in a URL":               url.QueryEscape("/x?key=" + url.QueryEscape(secret)),
		"a path in a query":            url.QueryEscape(url.PathEscape(secret)),
		"a URL in JSON":                `{"a":"` + url.QueryEscape(secret) + `"}`,
		"a URL in HTML":                strings.ReplaceAll(url.QueryEscape(secret), "%", "&#37;"),
		"JSON in JSON":                 string(again),
		"JSON in HTML":                 html.EscapeString(string(inJSON)),
		"JSON in a URL":                url.QueryEscape(string(inJSON)),
		"HTML in a URL":                url.QueryEscape(html.EscapeString(secret)),
		"PHP's JSON of basic":          strings.ReplaceAll(basic, "/", `\/`),
		".NET's JSON of basic":         strings.NewReplacer("+", `\u002B`, "/", `\u002F`).Replace(basic),
		"basic in a URL":               url.QueryEscape(basic),
		"basic in HTML":                strings.NewReplacer("+", "&#43;", "=", "&#x3D;", "/", "&#x2F;").Replace(basic),
		"base64 of basic":              base64.StdEncoding.EncodeToString([]byte("Basic " + basic)),
		"base64 of UTF-16":             base64.StdEncoding.EncodeToString([]byte("W\x00" + strings.Join(strings.Split(secret, ""), "\x00") + "\x00")), // PowerShell's -EncodedCommand
		"hexadecimal of UTF-16":        hex.EncodeToString([]byte("\x00" + strings.Join(strings.Split(secret, ""), "\x00"))),
		"base64 of a URL":              base64.RawURLEncoding.EncodeToString([]byte("https://a.example/?k=" + url.QueryEscape(secret))),
		"base64 of JSON":               base64.StdEncoding.EncodeToString(inJSON),
		"hexadecimal of a URL":         hex.EncodeToString([]byte(url.QueryEscape(secret))),
		"hexadecimal of either case":   strings.ToUpper(hex.EncodeToString([]byte(secret))[:20]) + hex.EncodeToString([]byte(secret))[20:],
		"base32":                       base32.StdEncoding.EncodeToString([]byte("x" + secret)),
		"quoted-printable":             quoted.String(),
		"UTF-32":                       strings.Join(strings.Split(secret, ""), "\x00\x00\x00"),
		"escapes of either case":       strings.NewReplacer("/", "%2f", "+", "%2B", "=", "%3d", "?", "%3F").Replace(secret),
		"a string of a language":       strings.NewReplacer("/", `\x2f`, "+", `\x2B`, "=", `\x3d`).Replace(secret),
		"base64 in lines, in JSON":     strings.ReplaceAll(inLines(base64.StdEncoding.EncodeToString([]byte("01234567890123456789"+secret)), 32, "\r\n"), "\r\n", `\r\n`),
		"base64 in lines, in a URL":    url.QueryEscape(inLines(base64.StdEncoding.EncodeToString([]byte("01234567890123456789"+secret)), 32, "\n")),
		"hexadecimal in lines":         inLines(hex.EncodeToString([]byte(secret)), 40, "\n"),
		"base64 in lines of 64 (PEM)":  inLines(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("y", 40)+secret)), 64, "\n"),
		"base64 in lines of 76 (MIME)": inLines(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("y", 50)+secret)), 76, "\r\n"),
		"base64 in lines of 20":        inLines(base64.StdEncoding.EncodeToString([]byte("z"+secret)), 20, "\r\n"),
	}
	return list
}

func TestASecretInTwoEncodingsIsReplaced(t *testing.T) {
	kerneltest.Long(t)
	for _, secret := range []string{testSecret, "qp+a/s=S3cr3t?k~ey/with+specials==", "pässwörd/日本+x y&z"} {
		all := secrets{{func() string { return secret }, testPlaceholder}}
		echoes := twofold(secret)
		for _, s := range fixture.EchoedForms(secret) { // in one
			echoes[s] = s
		}
		for name, text := range echoes {
			ascii := !strings.ContainsFunc(secret, func(c rune) bool { return c > 0x7e })
			if (strings.Contains(name, "UTF-") || name == "quoted-printable") && !ascii {
				continue
			}
			for how, src := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "in halves": iotest.HalfReader(strings.NewReader(text))} {
				got := readAll(t, all.redact().stream(io.NopCloser(src), func() {}))
				if !strings.Contains(got, testPlaceholder[:min(len(secret), len(testPlaceholder))]) {
					t.Errorf("%s, %s: %q of %q", name, how, got, text)
				}
				if len(got) != len(text) {
					t.Errorf("%s: %d bytes have become %d", name, len(text), len(got))
				}
				if how == "at once" && !strings.Contains(all.redact().Text(text), testPlaceholder) {
					t.Errorf("%s: %q as a text", name, all.redact().Text(text))
				}
			}
		}
	}
}
