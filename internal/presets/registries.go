package presets

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A registrySetting is a variable that names a tool's registries, and what the tool uses without it: as the tools
// document them (go help goproxy, go help module-auth; npm's "config"; pip's "Configuration"; The Cargo Book's
// "Environment Variables").
type registrySetting struct{ variable, otherwise string }

var registryTools = map[string][]registrySetting{
	"cargo": {{"", "https://index.crates.io https://static.crates.io https://crates.io"}},
	"go":    {{"GOPROXY", "https://proxy.golang.org,direct"}, {"GOSUMDB", "sum.golang.org"}},
	"npm":   {{"npm_config_registry", "https://registry.npmjs.org"}},
	"pip":   {{"PIP_INDEX_URL", "https://pypi.org https://files.pythonhosted.org"}, {"PIP_EXTRA_INDEX_URL", ""}},
}

// Registries returns what sandbox.Registries does. It reads the environment alone: a tool inside has a private HOME,
// without the settings of the user's.
func Registries(tools ...string) (hosts []string, err error) {
	var failed []error
	for _, tool := range tools {
		settings := slices.Clone(registryTools[tool])
		if settings == nil {
			failed = append(failed, unsaid(tool, "is not a tool whose registries a variable names",
				"name the hosts yourself, or one of "+strings.Join(slices.Sorted(maps.Keys(registryTools)), ", ")))
		}
		for _, v := range os.Environ() { // cargo's other registries
			name, _, _ := strings.Cut(v, "=")
			if tool == "cargo" && strings.HasPrefix(name, "CARGO_REGISTRIES_") && strings.HasSuffix(name, "_INDEX") {
				settings = append(settings, registrySetting{variable: name})
			}
		}
		for _, s := range settings {
			value := cmp.Or(os.Getenv(s.variable), os.Getenv(strings.ToUpper(s.variable)), s.otherwise)
			list, err := registryHosts(tool, s.variable, value)
			if err != nil {
				failed = append(failed, err)
			}
			for _, h := range list {
				if !slices.Contains(hosts, h) {
					hosts = append(hosts, h)
				}
			}
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return hosts, nil
}

// registryHosts returns the hosts that the value of a variable names. GOPROXY has URLs or names of hosts between
// commas and bars; GOSUMDB a name, maybe with a key, and maybe a URL; the others have URLs between spaces, cargo's
// with a protocol before them.
func registryHosts(tool, variable, value string) (hosts []string, err error) {
	urls := strings.Fields(value)
	switch variable {
	case "GOPROXY":
		urls = strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == '|' || c == ' ' })
		urls = slices.DeleteFunc(urls, func(u string) bool { return u == "direct" || u == "off" })
		if len(urls) == 0 {
			return nil, unsaid(tool, "GOPROXY names no proxy", "name the hosts of the modules' repositories yourself")
		}
	case "GOSUMDB":
		if len(urls) > 1 {
			urls = urls[1:]
		} else if len(urls) == 1 && urls[0] == "off" {
			urls = nil
		} else if len(urls) == 1 {
			urls[0], _, _ = strings.Cut(urls[0], "+")
		}
	}
	for _, u := range urls {
		if tool == "go" && !strings.Contains(u, ":/") {
			u = "https://" + u
		}
		h, err := registryHost(tool, variable, strings.TrimPrefix(u, "sparse+"))
		if err != nil {
			return nil, err
		}
		if h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// registryHost returns the host and port of a URL, for Network.Hosts, or "" for a URL of this machine's files.
func registryHost(tool, variable, raw string) (string, error) {
	bad := func(problem string) (string, error) {
		return "", unsaid(tool, variable+" "+problem, "set it to a URL such as https://packages.example.com/")
	}
	u, err := url.Parse(raw)
	if err != nil { // which has the URL
		return bad("has what is no URL")
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	switch {
	case u.Scheme == "file":
		return "", nil
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("has a URL that is neither http nor https")
	}
	host := net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	if strings.Contains(host, "*") {
		return bad("has a URL for more than one host")
	}
	p := policy.Policy{Network: policy.Network{Hosts: []string{host}}}
	if err := p.Validate(); err != nil {
		problem := variable + " has a host that Network.Hosts does not take"
		return "", &policy.PolicyError{Field: "Registries", Value: tool, Problem: problem, Err: err}
	}
	return host, nil
}

// unsaid is the error for a tool whose registries are not known. No part of it is a value of a setting: a URL may have
// a password.
func unsaid(tool, problem, remedy string) error {
	return &policy.PolicyError{Field: "Registries", Value: tool, Problem: problem, Remedy: remedy}
}
