package policy

import (
	"maps"
	"slices"
	"strings"
)

// Environ is what the tool gets when its command has no Env: host filtered by
// Pass, then Set, in the order of names. Of a name that host has twice the last
// counts, as in os/exec. An entry without a name is left out.
func (e Env) Environ(host []string) []string {
	values := map[string]string{}
	for _, kv := range host {
		name, value, found := strings.Cut(kv, "=")
		if !found || name == "" {
			continue
		}
		delete(values, name)
		if e.passes(name, value) {
			values[name] = value
		}
	}
	maps.Copy(values, e.Set)
	out := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}

// passes decides one variable: a literal name wins, a pattern takes no secret.
func (e Env) passes(name, value string) bool {
	if slices.Contains(e.Pass, name) {
		return true
	}
	for _, pattern := range e.Pass {
		if matchName(pattern, name) {
			return !secret(name, value)
		}
	}
	return false
}
