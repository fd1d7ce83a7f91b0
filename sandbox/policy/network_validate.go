package policy

import (
	"crypto/x509"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// maxPorts is how many ports of each kind a policy may name: a listener for each
// is passed up to the harness (plan.MaxSlots).
const maxPorts = 16

// dnsPort is where a Capture answers questions for names.
const dnsPort = 53

// Proxied reports whether anything passes through the harness, so that a run has a
// gateway and the proxies.
func (n Network) Proxied() bool {
	return len(n.Hosts) > 0 || n.Decide != nil || n.Observe != nil || n.Capture != nil
}

// wants names the first field that asks for more than nothing of the network,
// and does not go with the harness's own; "": there is none.
func (n Network) wants() string {
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"Hosts", len(n.Hosts) > 0}, {"UDP", len(n.UDP) > 0}, {"Deny", len(n.Deny) > 0}, {"Loopback", len(n.Loopback) > 0}, {"Listen", len(n.Listen) > 0},
		{"Credentials", len(n.Credentials) > 0}, {"Requests", len(n.Requests) > 0}, {"Decide", n.Decide != nil}, {"Patience", n.Patience != 0},
		{"Observe", n.Observe != nil}, {"Lookup", n.Lookup != nil}, {"SSH", n.SSH}, {"Authorities", n.Authorities != ""}, {"Limits", n.Limits != NetworkLimits{}}, {"Capture", n.Capture != nil},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}

func (p Policy) validateNetwork() error {
	n := p.Network
	if field := n.wants(); field != "" {
		switch {
		case n.Host:
			return &PolicyError{Field: "Network." + field, Problem: "says something of a network that Host shares with the harness, where nothing is bounded or seen", Remedy: "remove one of the two"}
		case slices.Contains(p.Open, BoundNetwork):
			return &PolicyError{Field: "Network." + field, Problem: "says something of a network that Open leaves unbounded", Remedy: "remove one of the two"}
		}
	}
	if n.SSH && !n.Proxied() {
		return &PolicyError{Field: "Network.SSH", Problem: "is a way to the hosts of a policy that has none", Remedy: "name them in Network.Hosts"}
	}
	for _, check := range [...]func() error{n.validateAuthorities, n.validatePorts, n.validateUnix, n.validateCredentials, n.validateRequests, n.validateAmounts, n.validateHosts, n.validateUDP, n.validateReach} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (n Network) validateAuthorities() error {
	if n.Authorities != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(n.Authorities)) {
		return &PolicyError{Field: "Network.Authorities", Problem: "holds no certificate in PEM", Remedy: "give the file's contents, not its name"}
	}
	return nil
}

func (n Network) validatePorts() error {
	for _, list := range [...]struct {
		field string
		ports []uint16
	}{{"Network.Loopback", n.Loopback}, {"Network.Listen", n.Listen}} {
		if len(list.ports) > maxPorts {
			return &PolicyError{Field: list.field, Value: strconv.Itoa(len(list.ports)) + " ports", Problem: "too many", Remedy: "at most " + strconv.Itoa(maxPorts)}
		}
		for i, port := range list.ports {
			bad := func(problem, remedy string) error {
				return &PolicyError{Field: errtext.Indexed(list.field, i), Value: strconv.Itoa(int(port)), Problem: problem, Remedy: remedy}
			}
			switch {
			case port == 0:
				return bad("is not a port number", "name the port that the server has")
			case slices.Index(list.ports, port) != i:
				return bad("stands there twice", "remove one")
			case list.field == "Network.Listen" && slices.Contains(n.Loopback, port):
				return bad("is in Loopback too, where the harness's server has it", "let the tool's server listen elsewhere")
			case list.field == "Network.Loopback" && port == dnsPort && n.Capture != nil:
				return bad("is where Capture answers questions for names", "remove one of the two")
			}
		}
	}
	return nil
}

func (n Network) validateUnix() error {
	for i, p := range n.Unix {
		if bad := checkPath(p, pathrule.Socket); bad != nil {
			bad.Field = errtext.Indexed("Network.Unix", i)
			return bad
		}
	}
	return nil
}

func (n Network) validateCredentials() error {
	for i, c := range n.Credentials {
		bad := func(field, value, problem, remedy string) error {
			return &PolicyError{Field: errtext.Indexed("Network.Credentials", i) + "." + field, Value: value, Problem: problem, Remedy: remedy}
		}
		problem := checkVariable(c.Name)
		twice := slices.IndexFunc(n.Credentials, func(o Credential) bool { return o.Name == c.Name })
		named := map[string]string{PlaceHeader: "header", PlaceQuery: "parameter"}[c.Place]
		switch {
		case problem != "":
			return bad("Name", c.Name, problem, "name the variable in which the tool expects it")
		case twice != i:
			return bad("Name", c.Name, "is the name of two", "give each its own variable")
		case c.Secret == "":
			return bad("Secret", "", "is empty", "give what the server wants to see")
		case strings.ContainsAny(c.Secret, "\x00\r\n"):
			return bad("Secret", "", "has a NUL byte or a line break", "trim it") // the secret itself is not shown
		case len(c.Hosts) == 0:
			return bad("Hosts", "", "is empty", "a secret is bound to the hosts that may have it")
		case slices.ContainsFunc(c.Hosts, func(h string) bool { return h == "*" || strings.HasPrefix(h, "*:") }):
			return bad("Hosts", strings.Join(c.Hosts, " "), "is every host", "name the hosts that may have the secret")
		case !slices.Contains([]string{PlaceBearer, PlaceBasic, PlaceHeader, PlaceQuery}, c.Place):
			return bad("Place", c.Place, "no such place", "use one of the Place constants")
		case named != "" && c.Field == "":
			return bad("Field", "", "is empty", "name the "+named)
		case c.Place == PlaceBearer && c.Field != "":
			return bad("Field", c.Field, "does not go with "+c.Place, "leave it empty")
		case !n.mayAllow():
			return bad("Hosts", strings.Join(c.Hosts, " "), "no host is allowed", "name them in Network.Hosts too")
		}
	}
	return nil
}

// mayAllow reports whether any host can be.
func (n Network) mayAllow() bool { return len(n.Hosts) > 0 || n.Decide != nil }

func (n Network) validateRequests() error {
	for i, r := range n.Requests {
		bad := func(field, value, problem, remedy string) error {
			return &PolicyError{Field: errtext.Indexed("Network.Requests", i) + "." + field, Value: value, Problem: problem, Remedy: remedy}
		}
		if !n.mayAllow() {
			return bad("Host", r.Host, "no host is allowed", "name it in Network.Hosts too")
		}
		for j, m := range r.Methods {
			if m == "" || strings.ToUpper(m) != m || strings.ContainsAny(m, " \t\r\n\x00,;:/\"") {
				return bad(errtext.Indexed("Methods", j), m, "is not an HTTP method", `write "GET"`)
			}
		}
		for j, p := range r.Paths {
			if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#\x00\r\n") {
				return bad(errtext.Indexed("Paths", j), p, "is not a URL path", `it begins with "/", and has no query`)
			}
			if strings.Contains(p, "*") {
				return bad(errtext.Indexed("Paths", j), p, `has a "*", which would stand for itself`, `write "/v1/" for all that lies below it`)
			}
		}
	}
	return nil
}

func (n Network) validateAmounts() error {
	if n.Patience < 0 {
		return &PolicyError{Field: "Network.Patience", Value: n.Patience.String(), Problem: "is negative", Remedy: "zero is 30 seconds"}
	}
	for _, f := range [...]struct {
		name   string
		amount int64
	}{{"Connections", int64(n.Limits.Connections)}, {"Bytes", n.Limits.Bytes}, {"Rate", n.Limits.Rate}, {"Names", int64(n.Limits.Names)}} {
		if f.amount < 0 {
			return &PolicyError{Field: "Network.Limits." + f.name, Value: strconv.FormatInt(f.amount, 10), Problem: "is negative", Remedy: "zero is what NetworkLimits says of it"}
		}
	}
	return nil
}
