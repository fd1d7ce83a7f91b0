package egress

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ErrRefused is wrapped by every [Refusal].
var ErrRefused = errors.New("refused by the sandbox's network policy")

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), r.Why)
}

func (r *Refusal) Unwrap() error { return ErrRefused }

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s entry %d, %q: %v", e.List, e.Index, e.Entry, e.Err)
}

func (e *RuleError) Unwrap() error { return e.Err }
