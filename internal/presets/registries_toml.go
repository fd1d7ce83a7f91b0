package presets

import (
	"slices"
	"strconv"
	"strings"
)

// tomlHeader returns the name that a table's header gives, whether it begins one more table of an array, and whether the name is understood.
func tomlHeader(bare string) (name string, list, ok bool) {
	name, list = strings.TrimSuffix(strings.TrimPrefix(bare, "["), "]"), strings.HasPrefix(bare, "[[")
	if list {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	name, ok = tomlKey(name)
	return name, list, ok
}

// tomlSettings reads the strings, and what is true, of the wanted tables and keys, those of arrays of tables with their numbers. It is no reader
// of TOML: what could be a setting of these in another form is a problem, and so is text that could hide the end of a value.
func tomlSettings(text string, wanted []string, set map[string]string) (problem string) {
	table, depth, nth := "", 0, 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"""`) || strings.Contains(line, "'''") {
			return "has a string of several lines"
		}
		bare, ok := uncomment(strings.TrimSpace(line))
		switch {
		case !ok:
			return "has a string without its end"
		case depth > 0 || bare == "": // within an array, or nothing
			depth += brackets(bare)
			continue
		case strings.HasPrefix(bare, "["):
			var list bool
			if table, list, ok = tomlHeader(bare); !ok {
				table = "-" // of no interest, unless it is one of these in another form
				if strings.Contains(bare, `\\`) || slices.ContainsFunc(wanted, func(w string) bool { return strings.Contains(bare, w) }) {
					return "has a table's name that is not understood"
				}
			} else if list {
				table += "." + strconv.Itoa(nth)
				nth++
			}
			continue
		}
		left, value, _ := strings.Cut(bare, "=")
		key, plain := tomlKey(strings.TrimSpace(left))
		value = strings.TrimSpace(value)
		depth = brackets(value)
		if table != "" {
			key = table + "." + key
		}
		if key == "include" {
			return "includes other files"
		}
		first, _, _ := strings.Cut(key, ".")
		if !slices.Contains(wanted, first) {
			if table == "" && !plain {
				return "has a key that is not understood"
			}
			continue
		}
		s, isString := tomlString(value)
		switch {
		case !plain || strings.HasPrefix(value, "{"):
			return "has a setting of " + first + " that is not understood"
		case isString:
			set[key] = s
		case value == "true":
			set[key] = value
		case slices.ContainsFunc([]string{"registry", "index", "replace-with", "url"}, func(end string) bool { return strings.HasSuffix(key, end) }):
			return "has a string that is not understood"
		}
	}
	if depth != 0 {
		return "has an array without its end"
	}
	return ""
}

// tomlKey returns a dotted key without spaces and quotes, and whether it is understood.
func tomlKey(s string) (string, bool) {
	parts := strings.Split(s, ".")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if q, ok := tomlString(p); ok {
			p = q
		}
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return "", false
		}
		parts[i] = p
	}
	return strings.Join(parts, "."), true
}

// tomlString returns the text of a string of one line.
func tomlString(s string) (string, bool) {
	if len(s) >= 2 && s[0] == '\'' && strings.IndexByte(s[1:], '\'') == len(s)-2 {
		return s[1 : len(s)-1], true
	}
	if len(s) < 2 || s[0] != '"' {
		return "", false
	}
	text, err := strconv.Unquote(s)
	return text, err == nil
}

// outside calls f with each byte of a line that is in no string, and its place; f stops it with false. It returns whether the last string has its end.
func outside(line string, f func(i int, c byte) bool) bool {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case !f(i, c):
			return true
		}
	}
	return quote == 0
}

// uncomment cuts a comment off; it is false for a string without its end.
func uncomment(line string) (string, bool) {
	end := len(line)
	ok := outside(line, func(i int, c byte) bool {
		if c == '#' {
			end = i
		}
		return c != '#'
	})
	return strings.TrimSpace(line[:end]), ok
}

// brackets counts those that are open at the end of a line.
func brackets(line string) (open int) {
	outside(line, func(_ int, c byte) bool {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		return true
	})
	return open
}
