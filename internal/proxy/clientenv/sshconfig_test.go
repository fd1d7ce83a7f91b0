package clientenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sshTakes asks ssh what it makes of a configuration, in the lines of its own.
func sshTakes(t *testing.T, text, host string, args ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	at := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ssh", append(append([]string{"-F", at}, args...), "-G", host)...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(string(out), "\n")
}

func TestSSHConnectsByTheCommandAndIsOtherwiseAsTheSystemHasIt(t *testing.T) {
	const system = "User everybodys\nProxyCommand /theirs %h\nProxyUseFdpass yes\n\nHost a.example\n\tPort 2222\n\nMatch host localhost\n\tPort 3333\nMatch final all\n\tCompression yes\n"
	text := SSHConfig("/own %h %p", system)
	const proxied, direct = "proxycommand /own %h %p", "proxycommand "
	for _, c := range []struct {
		name, host  string
		args        []string
		want, never []string
	}{
		{"a host", "b.example", nil, []string{proxied, "proxyusefdpass no", "user everybodys", "port 22", "compression yes"}, nil},
		{"a host of the system's", "a.example", nil, []string{proxied, "user everybodys", "port 2222"}, nil},
		{"loopback by name", "localhost", nil, []string{"user everybodys", "port 3333"}, []string{direct}},
		{"loopback by address", "127.0.0.1", nil, []string{"user everybodys"}, []string{direct}},
		{"loopback of IPv6", "::1", nil, []string{"user everybodys"}, []string{direct}},
		{"a name that stands for loopback", "a.example", []string{"-o", "HostName=127.0.0.1"}, nil, []string{direct}},
		{"what a user has said before", "b.example", []string{"-o", "ProxyCommand=/users", "-o", "User=mine"}, []string{"proxycommand /users", "user mine"}, nil},
		{"a jump", "b.example", []string{"-J", "a.example"}, []string{"proxyjump a.example"}, []string{direct}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := sshTakes(t, text, c.host, c.args...)
			for _, want := range c.want {
				if !slices.Contains(lines, want) {
					t.Errorf("no %q in\n%s", want, strings.Join(lines, "\n"))
				}
			}
			for _, never := range c.never {
				if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, never) }) {
					t.Errorf("%q in\n%s", never, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

func TestSSHRunsTheCommandWhereverItLies(t *testing.T) {
	for program, want := range map[string]string{
		"/run/x/relay":        "/run/x/relay %h %p http://p",
		"/a b/100%/relay":     "'/a b/100%%/relay' %h %p http://p",
		"/it's;here/$(relay)": `'/it'\''s;here/$(relay)' %h %p http://p`,
	} {
		command := ProxyCommand(program, "http://p")
		if command != want {
			t.Errorf("%s: %s", program, command)
		}
		if lines := sshTakes(t, SSHConfig(command, ""), "a.example"); !slices.Contains(lines, "proxycommand "+command) {
			t.Errorf("%s: ssh has\n%s", program, strings.Join(lines, "\n"))
		}
	}
	if got := ProxyCommand("/r", ""); got != "/r %h %p" {
		t.Errorf("without a proxy: %q", got)
	}
}

func TestSSHsIncludesAreFoundAsItReadsThem(t *testing.T) {
	text := "# Include /not\nInclude /etc/ssh/ssh_config.d/*.conf\n\tinclude=relative.conf \"/quoted\"\n Match final all\n  INCLUDE = /a /b # /c\n" +
		"Includes /no\nInclude ~/.ssh/mine ${HOME}/x \"/two words\" /%u\nInclude\nUser Include /no\r\nInclude /crlf\r\n"
	want := []string{"/etc/ssh/ssh_config.d/*.conf", "/etc/ssh/relative.conf", "/quoted", "/a", "/b", "/crlf"}
	if got := SSHIncludes(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
