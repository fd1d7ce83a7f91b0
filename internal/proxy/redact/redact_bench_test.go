package redact

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// redactCases are answers of a megabyte by what they have of a secret.
func redactCases() map[string][]byte {
	const size = 1 << 20
	secret := "p+a/s=S3cr3t?k~ey/with+specials==" // 33 bytes
	fill := func(s string) []byte { return []byte(strings.Repeat(s, size/len(s)+1)[:size]) }
	random := make([]byte, size*3/4)
	r := rand.NewChaCha8([32]byte{})
	r.Read(random)
	return map[string][]byte{
		"JSON":              fill(`{"id":12345,"name":"a name of some length","url":"https://example.com/a/b?c=d&e=%20f","ok":true}` + "\n"),
		"base64":            []byte(base64.StdEncoding.EncodeToString(random)[:size]),
		"the secret":        fill(secret),
		"a near miss":       fill(secret[:len(secret)-1] + "!"),
		"escapes of it":     fill("%252B%255C&#x26;&amp;\\u0026\\\\u002B"),
		"its first letter":  fill(secret[:1]),
		"its base64":        fill(base64.StdEncoding.EncodeToString([]byte(secret))),
		"lines of a letter": fill("p\n"),
	}
}

func BenchmarkRedact(b *testing.B) {
	long := strings.Repeat("aB3/", 1000)
	for _, s := range []struct{ name, secret string }{
		{"33 bytes", "p+a/s=S3cr3t?k~ey/with+specials=="}, {"4000 bytes", long}, {"one letter 200 times", strings.Repeat("p", 200)},
	} {
		r := secrets{{func() string { return s.secret }, testPlaceholder}}.redact()
		for name, text := range redactCases() {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					io.Copy(io.Discard, r.stream(io.NopCloser(bytes.NewReader(text)), func() {}))
				}
			})
		}
	}
}
