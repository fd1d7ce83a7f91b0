package supervisor

// The child's half of the stage imports this package, and has to start before
// fmt, os and strings have initialised. So the rules are written without them.

// A RulesError is a rule that cannot be encoded, or a blob that cannot be
// decoded. It wraps ErrRules.
type RulesError struct {
	Of      string // the path or name, or "a list", "the blob"
	Problem string
}

func (e *RulesError) Error() string { return ErrRules.Error() + ": " + e.Of + " " + e.Problem }

// Unwrap returns ErrRules.
func (e *RulesError) Unwrap() error { return ErrRules }

func bad(of, problem string) error { return &RulesError{of, problem} }

func put16(b []byte, v uint16) { b[0], b[1] = byte(v), byte(v>>8) }

func put32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func append16(b []byte, v uint16) []byte { return append(b, byte(v), byte(v>>8)) }

func get16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

func get32(b []byte) uint32 { return uint32(get16(b)) | uint32(get16(b[2:]))<<16 }

func has(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

func trimEnd(s, end string) string {
	if n := len(s) - len(end); n >= 0 && s[n:] == end {
		return s[:n]
	}
	return s
}

// components divides a path into its components.
func components(p string) []string {
	var list []string
	from := 0
	for i := range len(p) {
		if p[i] == '/' {
			list, from = append(list, p[from:i]), i+1
		}
	}
	return append(list, p[from:])
}
