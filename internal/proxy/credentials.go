package proxy

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/proxy/redact"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"

	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"

	"golang.org/x/net/http/httpguts"
)

// Bounds of a secret. A shorter one would be found in, and taken out of, answers
// that do not have it.
const (
	MinSecret = 8
	MaxSecret = 4096
)

// placeholderPrefix makes a placeholder known to a person who sees it.
const placeholderPrefix = "holdfast-"

// String says which credential this is, without its secret.
func (c Credential) String() string {
	return fmt.Sprintf("credential %s (%s %s) for %s", c.Name, c.Place, c.Field, strings.Join(c.Hosts, ", "))
}

// GoString keeps the secret out of %#v.
func (c Credential) GoString() string { return "proxy.Credential{" + c.String() + "}" }

// Format keeps the secret out of every verb of fmt.
func (c Credential) Format(f fmt.State, verb rune) { fmt.Fprint(f, c.String()) }

// MarshalJSON leaves the secret out.
func (c Credential) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name  string
		Hosts []string
		Place string
		Field string
	}{c.Name, c.Hosts, c.Place, c.Field})
}

// MarshalText is what other encoders take.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A credential is a Credential that was checked. The secret is behind a function,
// which no printer follows.
type credential struct {
	name        string
	placeholder string
	hosts       hostrules.Rules
	place       string
	field       string
	secret      func() string
}

// credentials are those of one proxy.
type credentials []credential

// headers are the names of the headers in which credentials stand.
func (all credentials) headers() []string {
	var names []string
	for _, c := range all {
		if c.place == "header" {
			names = append(names, c.field)
		}
	}
	return names
}

// redactor takes the secrets out of texts and responses.
func (all credentials) redactor() *redact.Redactor {
	var list []redact.Secret
	for _, c := range all {
		list = append(list, redact.Secret{Text: c.secret, Placeholder: c.placeholder})
	}
	return redact.New(list)
}

// compileCredentials checks a list and draws the placeholders. Entries of one name
// are several places for one secret, and share a placeholder.
func compileCredentials(list []Credential) (credentials, error) {
	var all credentials
	for i, c := range list {
		fail := func(err error) (credentials, error) {
			return nil, &ConfigError{List: "credential", Index: i, Name: c.Name, Err: err}
		}
		hosts, err := c.check()
		if err != nil {
			return fail(err)
		}
		placeholder := placeholderPrefix + strings.ToLower(rand.Text())
		if j := slices.IndexFunc(all, func(o credential) bool { return o.name == c.Name }); j >= 0 {
			if all[j].secret() != c.Secret {
				return fail(errors.New("the same variable has another secret in an earlier entry"))
			}
			placeholder = all[j].placeholder
		}
		all = append(all, credential{
			name: c.Name, placeholder: placeholder, hosts: hosts, place: c.Place, field: c.Field,
			secret: func() string { return c.Secret },
		})
	}
	return all, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check says what is wrong, in words that do not have the secret.
func (c Credential) check() (hostrules.Rules, error) {
	switch {
	case !variableName.MatchString(c.Name):
		return hostrules.Rules{}, errors.New("its name is not an environment variable's")
	case clientenv.Sets(c.Name):
		return hostrules.Rules{}, errors.New("the variable says where the proxies or the roots are")
	case len(c.Secret) < MinSecret || len(c.Secret) > MaxSecret:
		return hostrules.Rules{}, fmt.Errorf("a secret has from %d to %d bytes", MinSecret, MaxSecret)
	case !httpguts.ValidHeaderFieldValue(c.Secret) || strings.TrimSpace(c.Secret) != c.Secret:
		return hostrules.Rules{}, errors.New("the secret cannot stand in a header: it has a line's end, another control character, or a space at its end")
	case len(c.Hosts) == 0:
		return hostrules.Rules{}, errors.New("it is bound to no host")
	}
	if err := c.checkPlace(); err != nil {
		return hostrules.Rules{}, err
	}
	for _, h := range c.Hosts {
		if name, _, _ := strings.Cut(h, ":"); name == "*" {
			return hostrules.Rules{}, errors.New("a secret is bound to hosts by name, not to every host")
		}
	}
	return hostrules.Compile(c.Hosts, nil)
}

func (c Credential) checkPlace() error {
	switch c.Place {
	case "bearer":
		if c.Field != "" {
			return errors.New(`a "bearer" has no field: it stands in Authorization`)
		}
	case "basic":
		if strings.ContainsAny(c.Field, ":\x00\r\n") {
			return errors.New("the user's name has a colon or a control character")
		}
	case "header":
		if !httpguts.ValidHeaderFieldName(c.Field) || slices.Contains(hopByHop, http.CanonicalHeaderKey(c.Field)) {
			return errors.New("the field names no header that is passed on")
		}
	case "query":
		if c.Field == "" {
			return errors.New("the field does not name the query's parameter")
		}
	default:
		return fmt.Errorf(`the place is "bearer", "basic", "header" or "query", not %.20q`, c.Place)
	}
	return nil
}

// hopByHop are headers that do not reach the server, or that frame the message.
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Proxy-Authorization", "Proxy-Authenticate"}

// of returns the credentials that are bound to a target.
func (all credentials) of(h hostrules.Host, port uint16) credentials {
	var list credentials
	for _, c := range all {
		if c.hosts.Target(h, port).Outcome == hostrules.Allow {
			list = append(list, c)
		}
	}
	return list
}

// placeholders returns variable to placeholder.
func (all credentials) placeholders() map[string]string {
	m := map[string]string{}
	for _, c := range all {
		m[c.name] = c.placeholder
	}
	return m
}

// judge refuses a request with a placeholder to a host that the credential is not bound
// to, or in clear text. The secret would not be sent in either case; the refusal tells the
// tool and its user why. A placeholder in another field of a request to its own host passes
// unchanged.
func (all credentials) judge(r *http.Request, h hostrules.Host, port uint16, secure bool) *Refusal {
	bound := all.of(h, port)
	for _, c := range all {
		if !c.in(r) {
			continue
		}
		mine := slices.ContainsFunc(bound, func(b credential) bool { return b.placeholder == c.placeholder })
		if mine && secure {
			continue
		}
		no := &Refusal{Host: h.String(), Port: port, Rule: "credential " + c.name}
		if mine {
			no.Why, no.Instead = fmt.Sprintf("the placeholder of credential %s is in a request in clear text; the credential is sent over TLS alone", c.name), "ask by https"
		} else {
			no.Why, no.Instead = fmt.Sprintf("the placeholder of credential %s is in a request to a host that it is not bound to; nothing was sent", c.name), "leave the placeholder out of requests to this host"
		}
		return no
	}
	return nil
}

// in says whether a request carries the placeholder in its line or its headers,
// as it is or within a basic authorization.
func (c credential) in(r *http.Request) bool {
	has := func(s string) bool { return strings.Contains(s, c.placeholder) }
	if query, err := url.QueryUnescape(r.URL.RawQuery); has(r.URL.RawQuery) || has(r.URL.Path) || err == nil && has(query) {
		return true
	}
	for name, values := range r.Header {
		if has(strings.ToLower(name)) {
			return true
		}
		for _, v := range values {
			if user, password, ok := parseBasic(v); has(v) || ok && (has(user) || has(password)) {
				return true
			}
		}
	}
	return false
}

// put puts the secret in its place.
func (c credential) put(r *http.Request) {
	switch c.place {
	case "bearer":
		c.putHeader(r.Header, "Authorization", c.bearer)
	case "basic":
		c.putHeader(r.Header, "Authorization", c.basic)
	case "header":
		c.putHeader(r.Header, c.field, func(v string) string { return strings.Replace(v, c.placeholder, c.secret(), 1) })
	case "query":
		c.putQuery(r.URL)
	}
}

func (c credential) putHeader(h http.Header, name string, change func(string) string) {
	for i, v := range h.Values(name) {
		h.Values(name)[i] = change(v)
	}
}

// bearer knows GitHub's word for it too.
func (c credential) bearer(v string) string {
	scheme, token, _ := strings.Cut(v, " ")
	if s := strings.ToLower(scheme); (s == "bearer" || s == "token") && strings.TrimSpace(token) == c.placeholder {
		return scheme + " " + c.secret()
	}
	return v
}

// basic takes the placeholder as the password, or as the user's name, which is
// where some services have their tokens. With a field the user's name is that.
func (c credential) basic(v string) string {
	user, password, ok := parseBasic(v)
	switch {
	case ok && password == c.placeholder:
		password = c.secret()
		if c.field != "" {
			user = c.field
		}
	case ok && user == c.placeholder && c.field == "" && !strings.Contains(c.secret(), ":"):
		user = c.secret()
	default:
		return v
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func parseBasic(v string) (user, password string, ok bool) {
	scheme, text, _ := strings.Cut(v, " ")
	if !strings.EqualFold(scheme, "basic") {
		return "", "", false
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(b), ":")
}

// putQuery changes the parameter's value alone, where it stands first, and leaves
// the rest as written.
func (c credential) putQuery(u *url.URL) {
	parts := strings.Split(u.RawQuery, "&")
	for i, p := range parts {
		k, v, _ := strings.Cut(p, "=")
		name, err := url.QueryUnescape(k)
		if value, err2 := url.QueryUnescape(v); err == nil && err2 == nil && name == c.field && value == c.placeholder {
			parts[i] = k + "=" + url.QueryEscape(c.secret())
			break
		}
	}
	u.RawQuery = strings.Join(parts, "&")
}
