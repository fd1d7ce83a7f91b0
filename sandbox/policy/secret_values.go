package policy

import "strings"

// A shape is how a service's tokens look: their beginning, and how many of the
// characters of a token follow at least.
type shape struct {
	prefix string
	least  int
	digit  bool // one of them is a digit: the prefix begins ordinary words too
}

// tokenShapes are taken from the services' documentation and from the rules of secret
// scanners.
var tokenShapes = []shape{
	{"ghp_", 4, false}, {"gho_", 4, false}, {"ghu_", 4, false}, {"ghs_", 4, false}, {"ghr_", 4, false}, {"github_pat_", 4, false},
	{"glpat-", 4, false}, {"gldt-", 8, false}, {"glrt-", 8, false}, {"glcbt-", 8, false}, {"glptt-", 8, false},
	{"sk-ant-", 4, false}, {"sk-proj-", 4, false}, {"sk-or-", 8, false}, {"sk-", 16, true}, {"sk_live_", 8, false}, {"rk_live_", 8, false}, {"sk_test_", 8, false},
	{"xoxa-", 4, false}, {"xoxb-", 4, false}, {"xoxe-", 4, false}, {"xoxp-", 4, false}, {"xoxr-", 4, false}, {"xoxs-", 4, false}, {"xapp-", 8, true},
	{"AKIA", 16, true}, {"ASIA", 16, true}, {"AIza", 30, false}, {"ya29.", 16, false}, {"npm_", 30, true}, {"pypi-AgE", 16, false}, {"hf_", 30, false},
	{"SG.", 20, true}, {"hvs.", 20, false}, {"dop_v1_", 32, false}, {"shpat_", 16, false}, {"glsa_", 16, true}, {"gsk_", 30, true}, {"xai-", 30, true},
	{"AGE-SECRET-KEY-1", 16, false},
}

// secretValue says whether a value has the form of a secret, whatever its name is.
func secretValue(value string) bool {
	if URLWithUser(value) || privatePEM(value) || webToken(value) {
		return true
	}
	for _, s := range tokenShapes {
		if hasShape(value, s) {
			return true
		}
	}
	return false
}

func hasShape(value string, s shape) bool {
	return afterPrefix(value, s.prefix, func(rest string) bool {
		n := tokenLength(rest)
		return n >= s.least && (!s.digit || strings.ContainsAny(rest[:n], "0123456789"))
	})
}

// webToken finds a JSON web token: two objects in base64url, of which each begins
// with {" (RFC 7519).
func webToken(value string) bool {
	return afterPrefix(value, "eyJ", func(rest string) bool { return strings.HasPrefix(rest[tokenLength(rest):], ".eyJ") })
}

// privatePEM finds text in PEM form that is not known to be public (RFC 7468).
func privatePEM(value string) bool {
	for {
		_, rest, found := strings.Cut(value, "-----BEGIN ")
		if !found {
			return false
		}
		label, _, _ := strings.Cut(rest, "-----")
		switch label {
		case "CERTIFICATE", "TRUSTED CERTIFICATE", "CERTIFICATE REQUEST", "X509 CRL", "PUBLIC KEY", "RSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "SSH2 PUBLIC KEY":
			value = rest
		default:
			return true
		}
	}
}

// afterPrefix reports whether fits holds for what follows prefix anywhere in s where
// a word begins.
func afterPrefix(s, prefix string, fits func(rest string) bool) bool {
	for at := 0; ; at++ {
		i := strings.Index(s[at:], prefix)
		if i < 0 {
			return false
		}
		at += i
		if (at == 0 || !isAlphanumeric(s[at-1])) && fits(s[at+len(prefix):]) {
			return true
		}
	}
}

// tokenLength is how many characters of a token s begins with.
func tokenLength(s string) int {
	n := 0
	for n < len(s) && (isAlphanumeric(s[n]) || s[n] == '_' || s[n] == '-') {
		n++
	}
	return n
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// URLWithUser reports whether a URL in s has a user before its host, but for
// that of ssh, which is a login's name and no secret.
func URLWithUser(s string) bool {
	for {
		scheme, rest, found := strings.Cut(s, "://")
		if !found {
			return false
		}
		authority := rest
		if end := strings.IndexAny(rest, "/?# \t\n,;\"'"); end >= 0 {
			authority = rest[:end]
		}
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			if !strings.HasSuffix(scheme, "ssh") || strings.Contains(authority[:at], ":") {
				return true
			}
		}
		s = rest
	}
}
