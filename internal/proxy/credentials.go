package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/internal/proxy/redact"
	"github.com/holdfast-dev/holdfast/sandbox/policy"

	"golang.org/x/net/http/httpguts"
)

// placeholderPrefix makes a placeholder known to a person who sees it.
const placeholderPrefix = "holdfast-"

// minPlaceholder is how long a placeholder is at least: it has 60 bits then.
const minPlaceholder = len(placeholderPrefix) + 13

// likePlaceholder is the form of placeholders, of this sandbox and others, and of few words.
var likePlaceholder = regexp.MustCompile(placeholderPrefix + `(?:[2-7][a-z2-7]{12}|[a-z2-7]{26})[a-z2-7]*`)

// placeholderKey makes placeholders that a tool cannot hold its guesses of a secret against.
var placeholderKey = sync.OnceValue(rand.Text) // not when the package is imported

// placeholderOf returns the placeholder of a credential, the same for all proxies of a scope: a tool may keep it in a file. It is as long as
// the secret where that is long enough, so that an answer that reflects the secret keeps its length, and has the placeholder in it.
func placeholderOf(scope string, c policy.Credential) string {
	text := []byte(placeholderPrefix)
	for i := 0; len(text) < max(len(c.Secret), minPlaceholder); i++ {
		mac := hmac.New(sha256.New, []byte(placeholderKey()))
		fmt.Fprintf(mac, "%q %q %q %d", scope, c.Name, c.Secret, i)
		text = base32.StdEncoding.WithPadding(base32.NoPadding).AppendEncode(text, mac.Sum(nil))
	}
	text[len(placeholderPrefix)] = '2' + text[len(placeholderPrefix)]%6 // a digit: see likePlaceholder
	return strings.ToLower(string(text[:max(len(c.Secret), minPlaceholder)]))
}

// A credential is a policy.Credential that was checked. The secret is behind a function, which no printer follows.
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
		if c.place == policy.PlaceHeader {
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

// compileCredentials checks a list and makes the placeholders of a scope. Entries of one name are several places for one secret, and share a placeholder.
func compileCredentials(list []policy.Credential, scope string) (credentials, error) {
	var all credentials
	for i, c := range list {
		fail := func(err error) (credentials, error) {
			return nil, &ConfigError{List: "credential", Index: i, Name: c.Name, Err: err}
		}
		if err := checkCredential(c); err != nil {
			return fail(err)
		}
		hosts, err := hostrules.Compile(c.Hosts, nil)
		if err != nil {
			return fail(err)
		}
		if j := slices.IndexFunc(all, func(o credential) bool { return o.name == c.Name }); j >= 0 && all[j].secret() != c.Secret {
			return fail(errors.New("the same variable has another secret in an earlier entry"))
		}
		all = append(all, credential{
			name: c.Name, placeholder: placeholderOf(scope, c), hosts: hosts, place: c.Place, field: c.Field,
			secret: func() string { return c.Secret },
		})
	}
	return all, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkCredential says what Policy.Validate does not know of a credential, in words that do not have the secret.
func checkCredential(c policy.Credential) error {
	switch {
	case !variableName.MatchString(c.Name):
		return errors.New("its name is not an environment variable's")
	case clientenv.Sets(c.Name):
		return errors.New("the variable says where the proxies or the roots are")
	case !httpguts.ValidHeaderFieldValue(c.Secret) || strings.TrimSpace(c.Secret) != c.Secret:
		return errors.New("the secret cannot stand in a header: it has a line's end, another control character, or a space at its end")
	case c.Place == policy.PlaceBasic && strings.ContainsAny(c.Field, ":\x00\r\n"):
		return errors.New("the user's name has a colon or a control character")
	case c.Place == policy.PlaceHeader && (!httpguts.ValidHeaderFieldName(c.Field) || slices.Contains(hopByHop, http.CanonicalHeaderKey(c.Field))):
		return errors.New("the field names no header that is passed on")
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

// judge refuses a request with a placeholder to a host that the credential is not bound to, or in clear text, and one with another sandbox's.
// The secret would not be sent in either case; the refusal tells the tool and its user why. A placeholder in another field of a request to its
// own host passes unchanged, and is noted.
func (all credentials) judge(r *http.Request, h hostrules.Host, port uint16, secure bool) *Refusal {
	if len(all) == 0 {
		return nil
	}
	bound := all.of(h, port)
	text := carried(r)
	for _, c := range all {
		if !strings.Contains(text, c.placeholder) {
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
	for _, like := range likePlaceholder.FindAllString(text, -1) {
		if slices.ContainsFunc(all, func(c credential) bool { return strings.HasPrefix(like, c.placeholder) }) {
			continue
		}
		name := "the credential's variable"
		if len(bound) > 0 {
			name = "$" + bound[0].name
		}
		return &Refusal{Host: h.String(), Port: port, Rule: "credential placeholder",
			Why:     fmt.Sprintf("%.22s... is the placeholder of an earlier sandbox, kept in a file or a setting; it stands for no credential any more, and nothing was sent", like),
			Instead: name + " has this sandbox's placeholder: put that in its place"}
	}
	return nil
}

// carried is the text of a request's line and headers, as it is and with a query and a basic authorization decoded.
func carried(r *http.Request) string {
	list := []string{r.URL.RawQuery, r.URL.Path, r.URL.Opaque}
	if query, err := url.QueryUnescape(r.URL.RawQuery); err == nil {
		list = append(list, query)
	}
	for name, values := range r.Header {
		list = append(list, strings.ToLower(name))
		for _, v := range values {
			list = append(list, v)
			if user, password, ok := parseBasic(v); ok {
				list = append(list, user, password)
			}
		}
	}
	return strings.Join(list, "\n")
}

// put puts the secret in its place.
func (c credential) put(r *http.Request) {
	switch c.place {
	case policy.PlaceBearer:
		c.putHeader(r.Header, "Authorization", c.bearer)
	case policy.PlaceBasic:
		c.putHeader(r.Header, "Authorization", c.basic)
	case policy.PlaceHeader:
		c.putHeader(r.Header, c.field, func(v string) string { return strings.Replace(v, c.placeholder, c.secret(), 1) })
	case policy.PlaceQuery:
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

// basic takes the placeholder as the password, or as the user's name, which is where some services have their tokens. With a field the user's name is
// that.
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

// putQuery changes the parameter's value alone, where it stands first, and leaves the rest as written.
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
