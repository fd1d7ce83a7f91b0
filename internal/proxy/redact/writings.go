package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// minForm is how long a form of a secret has to be to be looked for: shorter ones stand in texts by chance.
const minForm = 6

// writingsOf returns the fixed writings of a secret, each as a view reads it: the text, in UTF-16 and UTF-32 too; the
// digits of base64, base32 and hexadecimal within any text around it; and the digits of what an escape, base64 or UTF-16
// has made of it. A secret that has escapes in it is looked for without them too, as the views read it.
func writingsOf(secret string) []string {
	texts := []string{secret, unescaped(secret), unescaped(unescaped(secret))}
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), jsonText(secret), html.EscapeString(secret)}
	forms = append(forms, digitsWithin(secret, 3, 6, base64.RawStdEncoding.EncodeToString)...)
	if !strings.ContainsFunc(secret, func(c rune) bool { return c > 0x7e }) {
		wide := strings.Join(strings.Split(secret, ""), "\x00") // between two characters, so of either order of bytes
		texts = append(texts, wide, strings.Join(strings.Split(secret, ""), "\x00\x00\x00"))
		forms = append(forms, wide)
	}
	list := append(texts, digitsWithin(secret, 5, 5, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString)...)
	for _, f := range forms {
		list = append(append(list, digitsWithin(f, 3, 6, base64.RawStdEncoding.EncodeToString)...), hex.EncodeToString([]byte(f)))
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return len(s) < min(minForm, len(secret)) || s == "" })
}

// digitsWithin returns the digits that a text alone decides, after any number of other bytes. A group is its bytes, and
// bits those of a digit.
func digitsWithin(s string, group, bits int, encode func([]byte) string) []string {
	var list []string
	for before := range group {
		raw := append(make([]byte, before), s...)
		list = append(list, encode(raw)[(before*8+bits-1)/bits:len(raw)*8/bits])
	}
	return list
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}
