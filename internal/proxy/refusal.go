package proxy

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

const (
	defaultConnections = 1024
	defaultNames       = 512
)

// The fields of Limits, by which a refusal says which of them was reached.
const (
	limitConnections = "Connections"
	limitBytes       = "Bytes"
	limitNames       = "Names"
)

// errBytes ends what is under way when Limits.Bytes have passed.
var errBytes = &Refusal{Why: "the policy's limit on bytes is reached", Limit: limitBytes}

// A Refusal is the error of a target that may not be reached.
type Refusal struct {
	Host string
	Port uint16
	Rule string // the entry that decided; "": none did
	Why  string

	Instead string // what the client can do by itself; "": the policy's owner alone can help
	Limit   string // the field of Limits that was reached; "": none was
}

func (r *Refusal) Error() string {
	if r.Host == "" {
		return r.Why
	}
	return fmt.Sprintf("%s: %s", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), r.Why)
}

// refuse is the refusal of a target.
func (t Target) refuse(d hostrules.Decision) error {
	return &Refusal{Host: t.Host.String(), Port: t.Port, Rule: d.Rule, Why: d.Why}
}

// limited is the refusal of a target beyond one of Limits, below the entry that allows it.
func (t Target) limited(field, entry, why string) error {
	return &Refusal{Host: t.Host.String(), Port: t.Port, Rule: entry, Why: why, Limit: field}
}

// spent is the refusal of a target when Limits.Bytes have passed.
func (t Target) spent(entry string) error { return t.limited(limitBytes, entry, errBytes.Why) }

// refusalOf returns the refusal that an error is, or nil.
func refusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// errBody is a request whose body is malformed, or not whole.
var errBody = errors.New("the request's body is malformed, or breaks off")

var errKey = &Refusal{Why: "the proxy's password is missing or wrong"}
