package sandbox

import (
	"encoding/json"
	"fmt"
)

// The places of a [Credential].
const (
	PlaceBearer = "bearer" // Authorization: Bearer SECRET
	PlaceBasic  = "basic"  // Authorization: Basic, of the user that Field names, with SECRET as the password
	PlaceHeader = "header" // the header that Field names
	PlaceQuery  = "query"  // the query's parameter that Field names
)

// A Credential is a secret that stays with the harness. The tool's environment
// has a placeholder under Name; where the tool sends that to one of Hosts, in
// Place, the harness puts the secret in its stead. It does so for no other host,
// and a placeholder that is sent elsewhere is worth nothing.
//
// For HTTPS the harness ends the tool's TLS, with an authority of the sandbox's own
// that only the trust bundle inside has, and checks the real server as strictly as
// ever. A tool that brings its own list of authorities does not trust it.
//
// It prints, in text and JSON, without its secret.
type Credential struct {
	Name   string   // the environment variable
	Secret string   // what the server wants
	Hosts  []string // in the notation of [Network.Hosts], which has to allow them
	Place  string   // one of PlaceBearer, PlaceBasic, PlaceHeader, PlaceQuery
	Field  string   // the header's, the parameter's or the user's name
}

// Format prints the credential without its secret, whatever the verb.
func (c Credential) Format(f fmt.State, verb rune) {
	where := c.Place
	if c.Field != "" {
		where += " " + c.Field
	}
	fmt.Fprintf(f, "{%s for %v in %s}", c.Name, c.Hosts, where)
}

// MarshalJSON writes the credential without its secret.
func (c Credential) MarshalJSON() ([]byte, error) {
	c.Secret = ""
	type plain Credential // without this method
	return json.Marshal(plain(c))
}

// A RequestRule allows requests to a host by method and path; see
// [Network.Requests].
type RequestRule struct {
	Host    string   // in the notation of [Network.Hosts]
	Methods []string // "GET", ...; none: every method
	Paths   []string // prefixes; one that does not end in "/" stands for itself and what lies below it; none: every path
}
