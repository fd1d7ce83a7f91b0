package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"

	"golang.org/x/net/http/httpguts"
)

// A requestRule is a policy.RequestRule that was checked.
type requestRule struct {
	hosts   hostrules.Rules
	entry   string
	methods []string
	paths   []string
	headers []string
}

// requestRules judge requests. A host with a rule may be asked what one of its
// rules allows; a host without any may be asked everything.
type requestRules []requestRule

func compileRequests(list []policy.RequestRule) (requestRules, error) {
	var rules requestRules
	for i, r := range list {
		c, err := compileRequest(r)
		if err != nil {
			return nil, &ConfigError{List: "request rule", Index: i, Name: r.Host, Err: err}
		}
		rules = append(rules, c)
	}
	return rules, nil
}

func compileRequest(r policy.RequestRule) (requestRule, error) {
	hosts, err := hostrules.Compile(nil, []string{r.Host}) // which it denies: one that allows leaves out special addresses
	if err != nil {
		return requestRule{}, err
	}
	for _, m := range r.Methods {
		if !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) || m == http.MethodConnect {
			return requestRule{}, fmt.Errorf("%.20q is no method to allow", m)
		}
	}
	for _, p := range r.Paths {
		path, err := canonicalPath(p)
		if err == nil && path != p {
			err = errors.New("a prefix is written without percent escapes")
		}
		if err != nil {
			return requestRule{}, fmt.Errorf("path %.80q: %w", p, err)
		}
	}
	for _, name := range r.Headers {
		if !httpguts.ValidHeaderFieldName(name) || slices.Contains(framing, strings.ToLower(name)) {
			return requestRule{}, fmt.Errorf("%.40q is no header to allow", name)
		}
	}
	return requestRule{hosts: hosts, entry: r.Host, methods: slices.Clone(r.Methods), paths: slices.Clone(r.Paths), headers: slices.Clone(r.Headers)}, nil
}

// of returns the rules that speak of a target.
func (rules requestRules) of(h hostrules.Host, port uint16) requestRules {
	var list requestRules
	for _, r := range rules {
		if r.hosts.Target(h, port).Rule != "" {
			list = append(list, r)
		}
	}
	return list
}

// passedBy returns the entry of a rule for an address that does not speak of the name which leads there, and by which requests
// would go past it; "": there is none.
func (rules requestRules) passedBy(t Target, a netip.Addr) string {
	for _, r := range rules.of(hostrules.HostOf(a.Unmap()), t.Port) {
		if !t.Host.IsAddr() && r.hosts.Target(t.Host, t.Port).Rule == "" {
			return r.entry
		}
	}
	return ""
}

// framing are the headers that say where a message ends, and for whom it is; they are net/http's.
var framing = []string{"content-length", "transfer-encoding", "host", "connection", "te", "trailer", "upgrade"}

// judge says why a request to a target is refused, or allows it. Its method and path
// are those that will be sent; the query, the body and what a WebSocket carries
// later are not judged.
// Fields are names of headers that have credentials for the target.
func (rules requestRules) judge(r *http.Request, h hostrules.Host, port uint16, fields ...string) *Refusal {
	list := rules.of(h, port)
	if len(list) == 0 {
		return nil
	}
	no := &Refusal{Host: h.String(), Port: port, Rule: "request rule " + list[0].entry}
	for _, rule := range list {
		fields = append(fields, rule.headers...)
	}
	if name := unknownHeader(r.Header, fields); name != "" {
		no.Why = fmt.Sprintf("the header %.40q could have the server see another request than the one that is judged", name)
		no.Instead = "leave the header out, or have the policy's owner name it in the rule's Headers"
		return no
	}
	raw := pathOf(r.URL)
	path, err := canonicalPath(raw)
	if err == nil && strings.ContainsFunc(raw, func(c rune) bool { return c > '~' }) {
		err = errPathSign
	}
	var may []string
	for _, rule := range list {
		if rule.method(r.Method) && rule.path(path, err) {
			return nil
		}
		may = append(may, rule.String())
	}
	no.Why = fmt.Sprintf("%s %.200q is not allowed at this host, which may be asked: %s", errtext.Printable(r.Method[:min(len(r.Method), 40)]), path, strings.Join(may, "; "))
	if err != nil {
		no.Why = fmt.Sprintf("%v, so that rules about paths cannot judge it; this host may be asked: %s", err, strings.Join(may, "; "))
		no.Instead = "write the path plainly"
	}
	return no
}

// method allows HEAD where GET is: it asks for less.
func (r requestRule) method(m string) bool {
	return len(r.methods) == 0 || slices.Contains(r.methods, m) || m == http.MethodHead && slices.Contains(r.methods, http.MethodGet)
}

func (r requestRule) path(path string, err error) bool {
	if len(r.paths) == 0 {
		return true
	}
	return err == nil && slices.ContainsFunc(r.paths, func(p string) bool { return isBelow(path, p) })
}

func (r requestRule) String() string {
	methods, paths := "any method", "any path"
	if len(r.methods) > 0 {
		methods = strings.Join(r.methods, ", ")
	}
	if len(r.paths) > 0 {
		paths = "paths below " + strings.Join(r.paths, ", ")
	}
	return methods + ", " + paths
}

// pathOf returns the path of a URL that rewriteRequest has made.
func pathOf(u *url.URL) string { return cmp.Or(u.Opaque, u.EscapedPath()) }
