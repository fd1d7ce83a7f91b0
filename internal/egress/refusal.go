package egress

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ErrRefused is wrapped by every [Refusal].
var ErrRefused = errors.New("refused by the sandbox's network policy")

// A Refusal is the error of a target that may not be reached.
type Refusal struct {
	Host string
	Port uint16
	Rule string // the entry that decided; "": none did
	Why  string

	Instead string // what the client can do by itself; "": the policy's owner alone can help
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), r.Why)
}

func (r *Refusal) Unwrap() error { return ErrRefused }

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s entry %d, %q: %v", e.List, e.Index, e.Entry, e.Err)
}

func (e *RuleError) Unwrap() error { return e.Err }

// refusalOf returns the refusal that an error is, or nil.
func refusalOf(err error) *Refusal {
	var r *Refusal
	errors.As(err, &r)
	return r
}
