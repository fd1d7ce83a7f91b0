// Package redact takes secrets out of what servers send: it finds them in the encodings in which servers echo requests,
// in streams, and masks them with as many bytes.
//
//	r := redact.New([]redact.Secret{{Text: secret, Placeholder: "holdfast-..."}})
//	err := r.Response(res) // header, body and trailer; a WebSocket too
//
// writings.go has the fixed writings of a secret: its text, UTF-16 and UTF-32, and base64, base32 and hexadecimal of
// these and of common escapes. automaton.go finds them all at once (Aho and Corasick, 1975). view.go reads a text as it
// stands, with escapes undone once and twice, and with quoted-printable undone: so any mixture of escapes is found, and
// the automaton has no writings for them. stream.go bounds what is held back, and response.go applies all of it.
//
// # Limits
//
// Not found are three encodings one upon the other, digits with an empty line in them, a part of a secret, writings of
// more than 32 bytes a byte, charsets that the server chooses, and forms of its own making: reversed, encrypted.
package redact
