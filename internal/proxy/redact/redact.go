package redact

import (
	"errors"
	"net/http"
	"strings"
	"sync"
)

// A Redactor masks secrets where an answer reflects them, in any of the encodings that servers give to what they echo. The
// nil redactor changes nothing.
type Redactor struct {
	known func() *patterns // made when an answer first needs them
}

// A Secret is masked by its placeholder. Text is a function, which no printer follows.
type Secret struct {
	Text        func() string
	Placeholder string
}

// New makes the redactor of some secrets; nil for none.
func New(list []Secret) *Redactor {
	if len(list) == 0 {
		return nil
	}
	return &Redactor{sync.OnceValue(func() *patterns { return newPatterns(list) })}
}

// Text puts placeholders into a text, whatever their length.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	var by []string // of each byte; "": it is not a secret's
	scan := newScanner(r.known(), func(from, to int64, placeholder string) {
		if by == nil {
			by = make([]string, len(s))
		}
		for i := from; i < to; i++ {
			by[i] = placeholder
		}
	})
	scan.feed([]byte(s))
	if scan.end(); by == nil {
		return s
	}
	var b strings.Builder
	for i, placeholder := range by {
		if placeholder == "" {
			b.WriteByte(s[i])
		} else if i == 0 || by[i-1] != placeholder {
			b.WriteString(placeholder)
		}
	}
	return b.String()
}

// CleanError keeps the error's type unless its text has a secret.
func (r *Redactor) CleanError(err error) error {
	if s := r.Text(err.Error()); s != err.Error() {
		return errors.New(s)
	}
	return err
}

// header redacts values, and drops a header whose name has a secret.
func (r *Redactor) header(h http.Header) {
	for name, values := range h {
		for i, v := range values {
			values[i] = r.Text(v)
		}
		if r.Text(name) != name {
			delete(h, name)
		}
	}
}
