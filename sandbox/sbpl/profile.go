package sbpl

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// A Profile is a profile of macOS's sandbox-exec that has been read.
type Profile struct {
	parsed  *seatbelt.Profile
	private bool // the host has no /private; see private.go
}

// An Error says why a text is no profile, and where: what sandbox-exec ends
// with status 65 for.
type Error struct {
	Name         string
	Line, Column int // from 1
	Message      string
}

// Error says it as sandbox-exec does.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at %s, line %d", e.Message, e.Name, e.Line)
}

// Parse reads a profile. The name is what errors and reasons cite, and params
// what (param "KEY") yields. What macOS brings, such as system.sb, is imported
// from stand-ins of our own. Its errors are of type [*Error].
func Parse(name, text string, params map[string]string) (*Profile, error) {
	p, err := seatbelt.Parse(seatbelt.Source{Name: name, Text: text}, seatbelt.Options{Params: params})
	if err != nil {
		return nil, readable(err)
	}
	return &Profile{parsed: p}, nil
}

func readable(err error) error {
	var bad *seatbelt.Error
	if errors.As(err, &bad) {
		return &Error{Name: bad.Source, Line: bad.Line, Column: bad.Column, Message: bad.Message}
	}
	return err
}

// Warnings are what the profile's author would want to know: filters that match
// nothing, rules that the order of precedence decides otherwise than "the last
// match wins".
func (p *Profile) Warnings() []string {
	list := make([]string, len(p.parsed.Warnings))
	for i, w := range p.parsed.Warnings {
		list[i] = w.String()
	}
	return list
}

// Names returns the names of the profiles that sandbox-exec -n takes.
func Names() []string { return seatbelt.Names() }

// Named returns our own profile of one of those names: it does what
// sandbox_init(3) says of it. A TMPDIR parameter is one more directory that
// no-write-except-temporary lets be written.
func Named(name string, params map[string]string) (*Profile, error) {
	source, ok := seatbelt.Named(name)
	if !ok {
		return nil, &Error{Name: name, Line: 1, Message: "profile not found"}
	}
	return Parse(source.Name, source.Text, params)
}
