package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestEnvironKeepsSecretsOut(t *testing.T) {
	out := []string{
		"API_KEY=x", "api_key=x", "MY_TOKEN=x", "CLIENT_SECRET=x", "DB_PASSWORD=x", "GCP_CREDENTIALS=x", "MYSQL_PWD=x", "PGPASSWORD=x",
		"AWS_PROFILE=x", "GOOGLE_CLOUD_PROJECT=x", "AZURE_TENANT=x", "OPENAI_BASE=x", "ANTHROPIC_MODEL=x", "GITHUB_ACTOR=x", "SSH_AUTH_SOCK=x",
		"DBUS_SESSION_BUS_ADDRESS=x", "LD_PRELOAD=x", "LD_LIBRARY_PATH=x", "GIT_DIR=x", "GIT_SSH_COMMAND=x", "BASH_ENV=x", "ENV=x",
		"NODE_OPTIONS=x", "PYTHONSTARTUP=x", "PERL5OPT=x", "RUBYOPT=x", "JAVA_TOOL_OPTIONS=x", "PROMPT_COMMAND=x", "BASH_FUNC_a/b%%=() { :; }",
		"npm_config_//registry.example/:_authToken=x", "AWS_SECRET_ACCESS_KEY_2=x", "XDG_RUNTIME_DIR=/run/user/0",
		"http_proxy=http://user:pw@proxy:3128", "DATABASE_URL=see postgres://u:p@db/x", "INDEX_URL=https://sometoken@host/simple",
		"DEPLOY=-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
	}
	in := []string{
		"PWD=/w", "OLDPWD=/x", "LANG=C", "TERM=xterm", "USER=u", "LOGNAME=u", "GOFLAGS=-v", "HTTP_PROXY=http://proxy:3128",
		"ORIGIN=ssh://git@host/repo", "EMPTY=", "CARGO_HOME=/c", "NOTE=a@b ://", "SSL_CERT_FILE=/etc/ssl/cert.pem",
	}
	got := Env{Pass: []string{"*"}}.Environ(append(slices.Clone(out), in...))
	slices.Sort(in)
	if !slices.Equal(got, in) {
		t.Errorf("got %q\nwant %q", got, in)
	}
}

func TestEnviron(t *testing.T) {
	host := []string{"A=1", "LC_ALL=C", "LC_TIME=C", "A=2", "MY_TOKEN=t", "=odd", "noequals", "X=1", "X=https://u:p@h"}
	tests := []struct {
		name string
		env  Env
		want string
	}{
		{"the zero value passes nothing", Env{}, ""},
		{"the last of two values counts", Env{Pass: []string{"A"}}, "A=2"},
		{"a pattern passes what it matches", Env{Pass: []string{"LC_*"}}, "LC_ALL=C LC_TIME=C"},
		{"a secret passes when it is listed literally", Env{Pass: []string{"*_TOKEN", "MY_TOKEN"}}, "MY_TOKEN=t"},
		{"a secret does not pass by a pattern", Env{Pass: []string{"MY_*"}}, ""},
		{"an earlier harmless value does not come back", Env{Pass: []string{"X*"}}, ""},
		{"Set wins over Pass", Env{Pass: []string{"A"}, Set: map[string]string{"A": "3", "B": ""}}, "A=3 B="},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(tt.env.Environ(host), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzEnviron(f *testing.F) {
	f.Add("A", "b")
	f.Add("MY_TOKEN", "://u@")
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.HasPrefix(name+"=", "*=") {
			return // its name is listed literally
		}
		for _, kv := range (Env{Pass: []string{"*"}}).Environ([]string{name + "=" + value}) {
			got, v, found := strings.Cut(kv, "=")
			if !found || got == "" || secret(got, v) {
				t.Errorf("%q passes", kv)
			}
		}
		if got := (Env{}).Environ([]string{name + "=" + value}); len(got) != 0 {
			t.Errorf("the zero value passes %q", got)
		}
	})
}
