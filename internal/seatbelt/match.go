package seatbelt

import (
	"slices"
	"strings"
)

// matches: the filter holds for the query.
func (f *Filter) matches(q *asked) bool {
	q.work++
	k := kindNamed(f.Kind)
	switch k.how {
	case combined:
		return f.combined(q)
	case endpointIs:
		return f.reaches(q)
	case pathIs, pathBelow, pathBegins, pathMatches:
		return q.Path != "" && f.compares(k.how, q.Path) || q.Alias != "" && f.compares(k.how, q.Alias)
	case targetIs:
		return slices.ContainsFunc(f.Args, q.aims)
	case vnodeIs:
		return q.VnodeType != "" && slices.Contains(f.Args, q.VnodeType)
	case extensionIs:
		return slices.ContainsFunc(f.Args, func(a string) bool { return slices.Contains(q.Extensions, a) })
	case factIs, factBegins, factMatches:
		fact, known := q.fact(k.fact)
		return known && f.compares(k.how, fact)
	case flagIs:
		fact, known := q.Attributes[k.fact]
		return known && (len(f.Args) == 0 || slices.Contains(f.Args, fact))
	}
	return false
}

// compares a text with the arguments, any of them.
func (f *Filter) compares(h how, text string) bool {
	for i, a := range f.Args {
		hit := false
		switch h {
		case pathIs, factIs:
			hit = text == a
		case pathBelow:
			hit = below(text, a)
		case pathBegins, factBegins:
			hit = strings.HasPrefix(text, a)
		case pathMatches, factMatches:
			hit = i < len(f.match) && f.match[i].MatchString(text)
		}
		if hit {
			return true
		}
	}
	return false
}

// below: p is dir or in it. A dir that ends in a slash is no path, but /.
func below(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return dir != "" && strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

func (f *Filter) combined(q *asked) bool {
	switch f.Kind {
	case "require-all":
		for i := range f.Sub {
			if !f.Sub[i].matches(q) {
				return false
			}
		}
		return true
	case "require-not":
		return len(f.Sub) == 1 && !f.Sub[0].matches(q)
	}
	for i := range f.Sub {
		if f.Sub[i].matches(q) {
			return true
		}
	}
	return false
}

// aims: the query's target is one of those that the filter's constant names.
func (q *asked) aims(constant string) bool {
	target := q.Target
	if target == "" {
		target = "others"
	}
	switch constant {
	case "others":
		return target != "self"
	case "same-sandbox":
		return target == "self" || target == "same-sandbox" || target == "children"
	}
	return target == constant
}

// fact is what the query tells about a filter's subject.
func (q *asked) fact(name string) (string, bool) {
	if v, ok := q.Attributes[name]; ok {
		return v, true
	}
	return q.Name, q.Name != ""
}

// reaches: the address is the filter's. remote is the peer of an incoming
// connection and the address of an outgoing one; local the other way round.
func (f *Filter) reaches(q *asked) bool {
	proto := f.Args[0]
	outgoing := q.Operation != "network-bind" && q.Operation != "network-inbound"
	if proto == "unix-socket" {
		if q.proto != "unix" {
			return false
		}
		return len(f.Sub) == 0 || slices.ContainsFunc(f.Sub, func(s Filter) bool { return s.matches(q) })
	}
	address, ok := q.Address, protocolIs(proto, q)
	if (f.Kind == "remote") != outgoing {
		address = q.Peer
	}
	if !ok || q.Operation == "network-bind" && f.Kind == "remote" {
		return false // what is bound has no other end
	}
	if len(f.Args) == 1 {
		return true
	}
	for _, a := range f.Args[1:] {
		e, err := parseEndpoint(a)
		if err == nil && e.covers(address, outgoing && f.Kind == "local") {
			return true
		}
	}
	return false
}

// protocolIs: the query's protocol is one of those that a filter's means.
func protocolIs(want string, q *asked) bool {
	if q.proto == "unix" {
		return false
	}
	base := strings.TrimRight(want, "46")
	if base != "ip" && base != q.proto {
		return false
	}
	six := strings.Count(q.Address, ":") > 1
	return base == want || strings.HasSuffix(want, "6") == six
}
