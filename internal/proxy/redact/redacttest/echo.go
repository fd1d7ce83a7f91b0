// Package redacttest has the forms in which servers echo a secret, for tests.
package redacttest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// Echoed returns a secret as it is, escaped for a URL, JSON and HTML as the
// libraries of several languages do it, in hexadecimal, in UTF-16, and what base64
// makes of it within any text around it.
func Echoed(secret string) []string {
	list := []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	list = append(list, inURLs(secret)...)
	list = append(list, InJSON(secret)...)
	list = append(list, inHTML(secret)...)
	if wide := strings.Join(strings.Split(secret, ""), "\x00"); !strings.ContainsFunc(secret, func(c rune) bool { return c > 0x7e }) {
		list = append(list, wide) // between two bytes of a character, so of either order
	}
	for before := range 3 {
		raw := append(make([]byte, before), secret...)
		from, to := (before*8+5)/6, len(raw)*8/6 // the digits that the secret alone decides
		list = append(list, base64.RawStdEncoding.EncodeToString(raw)[from:to], base64.RawURLEncoding.EncodeToString(raw)[from:to])
	}
	return list
}

// kept are the characters that a URL's escape leaves as they are, beside letters and
// digits.
var kept = []string{
	"-._~/",                  // Python's quote
	"-_.!~*'()",              // JavaScript's encodeURIComponent
	"-_.!~*'();,/?:@&=+$#",   // JavaScript's encodeURI
	"*-._",                   // forms, as browsers and Java write them
	"-._~!$&'()*+,;=:@",      // a path's segment (RFC 3986)
	"-._~!$&'()*+,;=:@/",     // a path
	"-._~!$&'()*+,;=:@/?",    // a query, of which this is a part
	"-._~!$'()*,;:@/?",       // a query's value
	"-._~!$&'()*+,;=:@/?#[]", // all but what may stand nowhere
}

func inURLs(secret string) []string {
	list := []string{url.QueryEscape(secret), url.PathEscape(secret)}
	for _, k := range kept {
		list = append(list, percent(secret, k))
	}
	for _, s := range list {
		list = append(list, LowerEscapes(s), strings.ReplaceAll(s, "%20", "+"))
	}
	return list
}

func percent(s, kept string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// LowerEscapes writes %2F as %2f.
func LowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// unicoded are the characters that libraries for JSON write by their numbers.
var unicoded = []string{
	"\"&'+<>`", // .NET
	"&'<=>",    // Gson
	"\"&'<>",   // PHP's JSON_HEX
	"&'+<>",    // templates of Go, in scripts
}

// InJSON returns a secret as the libraries of several languages write it in JSON.
func InJSON(secret string) []string {
	list := []string{marshalled(secret, true), marshalled(secret, false), inQuotes(strconv.Quote(secret)), inQuotes(strconv.QuoteToASCII(secret))}
	for _, chars := range unicoded {
		for _, form := range []string{`\u%04X`, `\u%04x`} {
			var b strings.Builder
			for _, c := range secret {
				switch {
				case strings.ContainsRune(chars, c):
					fmt.Fprintf(&b, form, c)
				case c == '"' || c == '\\':
					b.WriteString("\\" + string(c))
				default:
					b.WriteRune(c)
				}
			}
			list = append(list, b.String())
		}
	}
	for _, s := range list {
		list = append(list, strings.ReplaceAll(s, "/", `\/`)) // PHP
	}
	return list
}

func marshalled(s string, forHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(forHTML)
	if e.Encode(s) != nil {
		return s
	}
	return inQuotes(strings.TrimSpace(b.String()))
}

// inQuotes takes the quotes off.
func inQuotes(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`) }

// entitySets are what libraries for HTML and XML write beside &amp;, &lt; and &gt;.
var entitySets = [][]string{
	{},
	{`"`, "&quot;"},
	{`"`, "&quot;", "'", "&#39;"},
	{`"`, "&quot;", "'", "&apos;"},
	{`"`, "&quot;", "'", "&#039;"}, // PHP
	{`"`, "&quot;", "'", "&#x27;"}, // Python
	{`"`, "&quot;", "'", "&#x27;", "/", "&#x2F;"},
	{`"`, "&quot;", "'", "&#x27;", "`", "&#x60;"},
	{`"`, "&quot;", "'", "&#x27;", "`", "&#x60;", "=", "&#x3D;"},               // Handlebars
	{`"`, "&quot;", "'", "&#39;", "`", "&#x60;", "=", "&#x3D;", "/", "&#x2F;"}, // Mustache
	{`"`, "&#34;", "'", "&#39;", "+", "&#43;"},                                 // Go's templates
}

func inHTML(secret string) []string {
	list := []string{html.EscapeString(secret)}
	for _, e := range entitySets {
		list = append(list, strings.NewReplacer(append([]string{"&", "&amp;", "<", "&lt;", ">", "&gt;"}, e...)...).Replace(secret))
	}
	return list
}
