package policy

import (
	"errors"
	"net/netip"
	"time"
)

// A Process is one that runs in a session, as its Processes lists it.
type Process struct {
	PID     int           `json:"pid"`            // as the processes inside know it, and Session.Signal
	Outside int           `json:"outside"`        // as this machine knows it
	Parent  int           `json:"parent"`         // inside; 0: the tool itself, or one whose parent has ended
	Args    []string      `json:"args,omitempty"` // its command line, of that 4 KiB and 256 words; empty: it shows none
	Command string        `json:"command"`        // the tool of the command that it belongs to
	ID      int           `json:"id,omitempty"`   // and that command's Cmd.ID; 0: the server of Session.Files
	CPU     time.Duration `json:"cpu_nanoseconds,omitempty"`
	Memory  uint64        `json:"memory,omitempty"` // resident, in bytes
}

// A SessionError is what Open returns where sessions cannot be held, with what that takes (Err wraps [errors.ErrUnsupported]), and what a
// command of a session returns when the session has ended before it; Err says why, where that is known: a ProcessError, [os.ErrClosed].
type SessionError struct {
	Reason string
	Remedy string // "": there is none
	Err    error
}

func (e *SessionError) Error() string {
	text := "sandbox: the session " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		text += " (remedy: " + e.Remedy + ")"
	}
	return text
}

// Unwrap returns Err.
func (e *SessionError) Unwrap() error { return e.Err }

// ErrPaused is wrapped by the error of what a session refuses between its Pause and Resume.
var ErrPaused = errors.New("it is paused")

// A Port is one at which a process of a session listens, as its Ports lists it.
type Port struct {
	Port     uint16     `json:"port"`
	Address  netip.Addr `json:"address"`          // which it listens at
	Protocol string     `json:"protocol"`         // "tcp", "udp"
	Process  Process    `json:"process,omitzero"` // zero: none of the session's has it open
}

// An Output is what a command of a session has printed to its Stdout and Stderr, in one row as it came, as far as it is kept: Session.Output
// returns it. What went to a file of the harness's is not in it.
type Output struct {
	Data    []byte // from the offset that was asked for
	Next    int64  // the offset of what follows
	Dropped int64  // bytes from that offset on that are not kept any more
	Ended   bool   // nothing follows: no process has it open
}
