package policy

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
// Place, the harness puts the secret in its stead, over TLS alone. It does so for
// no other host. Other variables of the policy's Env that contain the secret get the
// placeholder too; what the caller puts into a Cmd's own Env is the caller's. A request with a placeholder in its line or
// headers, to another host or in clear text, is refused where the harness sees it; elsewhere
// the placeholder is useless.
//
// For HTTPS the harness ends the tool's TLS, with an authority of the sandbox's own
// that only the trust bundle inside contains, and verifies the real server's certificate
// as always. A tool that brings its own list of authorities does not trust it.
//
// A Credential prints, in text and JSON, without its secret, and so do a [Policy] and a
// sandbox.Sandbox. Exception: fmt prints all of a Policy that is in an unexported field.
type Credential struct {
	Name   string   // the environment variable, of no other Credential
	Secret string   // what the server wants, 8 to 4096 bytes
	Hosts  []string // in the notation of [Network.Hosts], which has to allow them; not "*"
	Place  string   // one of PlaceBearer, PlaceBasic, PlaceHeader, PlaceQuery
	Field  string   // the header's, the parameter's or the user's name; of PlaceBasic "": any user's, or the secret is the user's name
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

// MarshalText writes the credential without its secret, for encoders that are not
// JSON's.
func (c Credential) MarshalText() ([]byte, error) { return fmt.Append(nil, c), nil }

// A RequestRule allows requests to a host by method and path; see
// [Network.Requests]. Queries, bodies and what a WebSocket carries are not judged.
// Headers that would have the server see another method or path are refused, and, where
// rules have Paths, a path that servers read in several ways.
type RequestRule struct {
	Host    string   // in the notation of [Network.Hosts], which has to allow it, but "*" and ranges are for special addresses, too; what is at an address with a rule is reached by no name without that rule
	Methods []string // "GET", which HEAD goes with, ...; none: every method
	Paths   []string // prefixes, without "*"; one that does not end in "/" stands for itself and what lies below it; none: every path
	// Headers are names of further headers that may be sent to the host, beside the fields of HTTP
	// and those of common clients. All others are refused: servers and proxies in front of them take
	// from some of these another method, path, tenant, operation or identity than the request's own.
	Headers []string
}
