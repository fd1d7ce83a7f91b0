package gittext

// harmlessURL refuses a URL that makes git start a program of its author's choice: a remote helper (`ext::`,
// any `x::`), an option in the place of a host or path (CVE-2017-1000117, CVE-2018-17456), or ssh to this very
// machine, where the path would not be judged. That leaves https, http, ssh and git, the host:path form, and local directories, see
// localPath.
//
//go:norace
func (t *Text) harmlessURL() Verdict {
	if t.Removing {
		return Harmless
	}
	if t.val >= t.end || t.c(t.val) == '-' {
		return Foreign
	}
	colon, slash := t.end, t.end
	for i := t.end; i > t.val; i-- {
		c, d := t.c(i-1), t.c(i)
		switch {
		case c == '"', c == ';', c == '#', c == '%', c == ' ', c == '\t':
			return Foreign
		case c == ':' && d == ':', (c == '/' || c == '@') && d == '-':
			return Foreign
		case c == ':':
			colon = i - 1
		case c == '/':
			slash = i - 1
		}
	}
	switch {
	case t.WorkTree && colon == t.end && t.isRelative():
		return Harmless
	case colon == t.end, slash == t.val:
		return t.localPath(t.val)
	case colon > slash || colon == t.val:
		return Foreign
	case t.c(colon+1) == '/' && t.c(colon+2) == '/':
		if t.is(t.val, colon, "file") {
			if t.c(colon+3) != '/' {
				return Foreign
			}
			return t.localPath(colon + 3)
		}
		if t.is(t.val, colon, "ssh") || t.is(t.val, colon, "git") {
			return harmlessIf(!t.loopback(colon + 3))
		}
		return harmlessIf(t.is(t.val, colon, "https") || t.is(t.val, colon, "http"))
	}
	return harmlessIf(!t.loopback(t.val))
}

// loopback reports whether the host that begins at i, behind a user's name, is a usual name of this machine.
//
//go:norace
func (t *Text) loopback(i uint) bool {
	for j := i; j < t.end && t.c(j) != '/' && t.c(j) != ':'; j++ {
		if t.c(j) == '@' {
			i = j + 1
		}
	}
	c := t.c(i)
	return c == '[' || c == ':' || c == '0' || t.is(i, i+9, "localhost") || t.is(i, i+4, "127.") || t.is(i, i+4, "ip6-")
}

// localPath judges the path of a repository, from i on. A push or fetch runs that repository's hooks, as the user. So it has to be
// there, as a directory, without a link on the way. In a root all git directories are held, those that come to be there later
// too; what lies outside is not the tool's.
//
//go:norace
func (t *Text) localPath(i uint) Verdict {
	for j := i; j < t.end; j++ {
		if t.c(j) == '-' && (j == i || t.c(j-1) == '/') {
			return Foreign
		}
	}
	if i >= t.end || t.is(i, i+5, "/proc") || t.is(i, i+4, "/dev") || t.is(i, i+4, "/sys") {
		return Foreign
	}
	t.Local, t.LocalEnd = i, t.end
	return IfDirectory
}
