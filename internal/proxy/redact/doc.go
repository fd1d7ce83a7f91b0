// Package redact takes secrets out of what servers send: it finds them in every
// encoding in which servers echo what they are sent, in streams, looking at each byte
// once, and puts their placeholders there.
//
//	r := redact.New([]redact.Secret{{Text: secret, Placeholder: "holdfast-..."}})
//	err := r.Response(res) // header, body and trailer; a WebSocket too
//
// encodings.go has the encodings of a secret, chartree.go how each of their characters
// may be escaped, matcher.go the automaton that finds them, units.go where a stream may
// be passed on without waiting for more.
package redact
