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
	"unicode/utf8"
)

// An encoding is one form of a secret, character by character, each of which a server may
// write in several ways (chartree.go).
type encoding struct {
	text   string
	script alphabet
	chars  []*charTree
	most   int // bytes of its longest writing, without line ends
	with   string
}

// encodingsOf returns the forms in which servers echo a secret, and what they have been
// sent of it: the text, in UTF-16 and UTF-32 too; its digits in base64, base32 and hexadecimal,
// within any text around it; and the digits of what an escape, base64 or UTF-16 has made of it.
func encodingsOf(secret string) []encoding {
	list := []encoding{{text: secret}}
	if isASCII(secret) {
		for _, zeros := range []string{"\x00", "\x00\x00\x00"} { // between two characters, so of either order
			list = append(list, encoding{text: strings.Join(strings.Split(secret, ""), zeros), script: exact})
		}
	}
	forms := []string{secret}
	for _, f := range append([]string{url.QueryEscape(secret), url.PathEscape(secret), jsonText(secret), html.EscapeString(secret), strings.Join(strings.Split(secret, ""), "\x00")}, base64Within(secret)...) {
		if !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	for i, f := range forms {
		if i > 0 && len(f) < minDigits {
			continue
		}
		for _, d := range base64Within(f) {
			list = append(list, encoding{text: d, script: digits64})
		}
		list = append(list, encoding{text: hex.EncodeToString([]byte(f)), script: digitText})
	}
	for _, d := range base32Within(secret) {
		list = append(list, encoding{text: d, script: digitText})
	}
	return slices.DeleteFunc(list, func(s encoding) bool { return s.text == "" })
}

// minDigits is how long a form has to be for its digits to be looked for: those of
// fewer bytes stand in texts by chance.
const minDigits = 6

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7e })
}

// base64Within are the digits of base64 that a text alone decides, after 0, 1 and 2 other bytes.
func base64Within(s string) []string {
	return digitsWithin(s, 3, 6, base64.RawStdEncoding.EncodeToString)
}

// base32Within are the same of base32.
func base32Within(s string) []string {
	return digitsWithin(s, 5, 5, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString)
}

// digitsWithin takes the bytes of a group of digits, and the bits of a digit.
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

// compile finds the choices of each character.
func (s *encoding) compile() {
	for rest := s.text; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		if s.script != plainText {
			n = 1
		}
		char := rest[:n]
		s.chars = append(s.chars, charTreeOf(charKey{s.script, char}))
		s.most += maxCharBytes(s.script, char)
		rest = rest[n:]
	}
	if s.script == digits64 || s.script == digitText {
		s.most += (len(s.chars)/minDigitRun + 1) * len("%0D%0A")
	}
}

// maxCharBytes is how many bytes a character takes at most.
func maxCharBytes(s alphabet, char string) int {
	switch {
	case s == exact || s == digitText || s == digits64 && alphanumeric(char):
		return len(char)
	case alphanumeric(char):
		return len("&#x0041;")
	}
	return len("&#x0026;&#x0023;x002F&#x003B;") * len(char)
}
