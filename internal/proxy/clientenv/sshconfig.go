package clientenv

import (
	"path"
	"strings"
)

// SystemSSHConfigs are the files that ssh reads after the user's own: what the
// administrator says, and on systems that keep theirs apart (openSUSE) the vendor's.
// The root that the tool sees may have another text in their places, by which
// ssh, scp, sftp and what starts them connect through the sandbox without being told.
var SystemSSHConfigs = []string{"/etc/ssh/ssh_config", "/usr/etc/ssh/ssh_config"}

// ProxyCommand is what makes ssh connect by a program that is shown as [RelayName],
// through the proxy at a URL or, without one, through the environment's. ssh expands
// what begins with a percent sign, and hands it to a shell.
func ProxyCommand(program, proxy string) string {
	if strings.Trim(program, shellSafe) != "" {
		program = quoted(program)
	}
	return strings.TrimSpace(strings.ReplaceAll(program, "%", "%%") + " %h %p " + proxy)
}

// shellSafe are characters that mean themselves to a shell.
const shellSafe = "/._-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// SSHConfig is a configuration by which ssh reaches hosts through command, loopback
// directly, and is otherwise what the system's text makes it. The first value that
// ssh finds is the one it takes (ssh_config(5)), so what a user's own file or the
// command line says goes before this, and this before the system's.
func SSHConfig(command, system string) string {
	return "# The sandbox shows this in the place of the system's own text, which follows.\n" +
		"Match host " + noProxyHosts + "\n" +
		"\tProxyCommand none\n" +
		"Match all\n" +
		"\tProxyCommand " + command + "\n" +
		"\tProxyUseFdpass no\n" + // a relay has to stay
		"\n" + system // under Match all, as it was under nothing
}

// SSHIncludes returns the patterns of the files that a text of the system's
// configuration includes, as absolute paths. A name that depends on the user or
// the environment is left out, and so is one with quotes or blanks within.
func SSHIncludes(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, " \t=")
		if end < 0 || !strings.EqualFold(line[:end], "Include") {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimLeft(line[end:], " \t"), "=")
		for _, name := range strings.Fields(rest) {
			if name[0] == '#' {
				break
			}
			if name, ok := plainName(name); ok {
				list = append(list, name)
			}
		}
	}
	return list
}

// plainName is the path that an argument of Include is. One that is not absolute
// lies where the administrator's text does.
func plainName(s string) (string, bool) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if s == "" || strings.ContainsAny(s, "\"'\\$%~") {
		return "", false
	}
	if !path.IsAbs(s) {
		s = path.Join(path.Dir(SystemSSHConfigs[0]), s)
	}
	return s, true
}
