package presets

import (
	"os"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// Secret says in words why a path, or with tree all that lies in a directory, is not to be shown by a program's own
// decision; "": nothing is known to speak against it. Names of secrets count below every directory, not below the user's home alone.
func Secret(p string, tree bool) string {
	for _, s := range systemSecrets {
		if pathrule.Within(p, s) || tree && pathrule.Within(s, p) {
			return "the system keeps secrets in " + s
		}
	}
	for _, s := range homeSecrets {
		if strings.Contains(p+"/", "/"+s+"/") {
			return "secrets lie in " + s
		}
		if tree && holds(p, s) {
			return "secrets lie in it: " + s
		}
	}
	for _, d := range AlwaysHidden {
		if tree && (pathrule.Within(d, p) || p == d || d == "/home" && path.Dir(p) == d) {
			return "it is a whole home, or the state of services"
		}
	}
	return ""
}

// holds reports whether a secret of a home is there in a directory, which may be the home or one in it.
func holds(dir, secret string) bool {
	for rest, more := secret, true; more; {
		if _, err := os.Lstat(path.Join(dir, rest)); err == nil && strings.HasSuffix(dir+"/", "/"+strings.TrimSuffix(secret, rest)) {
			return true
		}
		_, rest, more = strings.Cut(rest, "/")
	}
	return false
}
