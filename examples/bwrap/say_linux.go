package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// A speaker writes diagnostics as bubblewrap does.
type speaker struct {
	out    io.Writer
	levels bool // each line begins with its level, as a journal reads it
}

func (s *speaker) line(level int, text string) {
	if s.levels {
		fmt.Fprintf(s.out, "<%d>", level)
	}
	fmt.Fprintf(s.out, "bwrap: %s\n", text)
}

func (s *speaker) fail(err error) { s.line(3, err.Error()) }

// onlyLast warns of an option of which an earlier use has no effect.
func (s *speaker) onlyLast(option string) {
	s.line(4, "Only the last "+option+" option will take effect")
}

// wantsText ends the program with a text and no diagnostic.
type wantsText struct {
	text   string
	out    *os.File
	status int
}

func (*wantsText) Error() string { return "only a text was asked for" }

// A complaint is an error in bubblewrap's words, capital letters included:
// programs read them.
type complaint string

func (c complaint) Error() string { return string(c) }

func complain(format string, args ...any) error { return complaint(fmt.Sprintf(format, args...)) }

// because is a message that ends in the errno's own, as perror(3) has it.
func because(err error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), reason{err})
}

// reason prints the errno at the end of err with a capital letter.
type reason struct{ err error }

func (r reason) Error() string {
	text := r.err.Error()
	var errno syscall.Errno
	if errors.As(r.err, &errno) {
		text = errno.Error()
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Unwrap returns the error itself.
func (r reason) Unwrap() error { return r.err }
