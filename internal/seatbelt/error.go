package seatbelt

import "fmt"

// An Error says why a text is not a profile: what sandbox-exec ends with status 65 for.
type Error struct {
	Source       string
	Line, Column int // from 1; columns count bytes
	Message      string
}

// Error says it as sandbox-exec does.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at %s, line %d", e.Message, e.Source, e.Line)
}

// A Position is a place in a Source.
type Position struct {
	Source       string
	Line, Column int // from 1; columns count bytes
}

// String is the position as editors read it, without its column.
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.Source, p.Line) }

func fail(at Position, format string, args ...any) error {
	return &Error{Source: at.Source, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
}
