package policy

import (
	"path"
	"strings"
	"testing"
)

// FuzzMatchStars holds the quick matcher against path.Match, where both mean the
// same.
func FuzzMatchStars(f *testing.F) {
	for _, pattern := range append(SecretNames(), "*", "**", "a*b*c", "*a*", "", "*ab*ab") {
		for _, name := range []string{"", "a", "AWS_KEY", "MY_TOKEN_X", "TOKEN", "abc", "aXbYc", "abab", "aab", "PATH", "ENV", "XENV", "a:_AUTHb"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		for _, r := range pattern + name {
			if r == '/' || r == '?' || r == '[' || r == '\\' {
				return
			}
		}
		want, err := path.Match(pattern, name)
		if err != nil {
			return
		}
		if got := matchStars(pattern, name); got != want {
			t.Errorf("matchStars(%q, %q) is %v; path.Match says %v", pattern, name, got, want)
		}
	})
}

// FuzzSecretWordsAreTheirPatterns holds the quick search for words against the
// patterns that SecretNames returns.
func FuzzSecretWordsAreTheirPatterns(f *testing.F) {
	for _, name := range []string{"API_KEY2", "KEYBOARD", "PWD", "DB_PW", "PWX_PW", "MONKEY", "KEY", "SESSIONS", "SESSIONID", "X.TOKEN.Y", "É_KEYÉ"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.ToUpper(name)
		for _, plain := range plainWords {
			if strings.Contains(name, plain) {
				return
			}
		}
		want := false
		for _, pattern := range SecretNames()[:2*len(secretWords)] {
			want = want || matchName(pattern, name)
		}
		if got := hasSecretWord(name); got != want {
			t.Errorf("%q: %v; the patterns say %v", name, got, want)
		}
	})
}

// A secret is known by its variable's name, whatever the words around it.
func TestVariablesThatAreSecretsByName(t *testing.T) {
	for _, name := range strings.Fields(`SSHPASS API_KEYS API_TOKENS API_KEY2 KEY1 SECRET_1 PASSWORD1 PASS DBPASS DB_PW LDAP_BINDPW NEXUS_CREDS BW_SESSION
		OP_SESSION_my BUNDLE_GEMS__EXAMPLE__COM CONNECTIONSTRING APP_CONNECTION_STRING MY_JWT jwt API_KEY APIKEY apiKey TOKEN TOKEN_2 SECRETS_JSON
		DB_PASSWORD_OLD MYSQL_PWD SESSION PHPSESSID SESSIONID CRED MY_CREDENTIALS PASSPHRASE KEY_ID DEPLOY_KEY_B64 PASSWD SESSION_MANAGER`) {
		if !secret(name, "x") {
			t.Errorf("%s passes", name)
		}
	}
	for _, name := range strings.Fields(`PWD OLDPWD KEYBOARD KEYMAP XDG_SESSION_TYPE XDG_SESSION_DESKTOP DESKTOP_SESSION GDMSESSION TOKENIZERS_PARALLELISM
		PASSENGER_APP_ENV COMPASS_DIR PROXY_BYPASS SECRETARY SESSIONS_DIR CREDITS MONKEY_PATCH MAX_TOKENS CLAUDE_CODE_MAX_OUTPUT_TOKENS PATH PATTERN AUTHOR PWDX
		BUNDLE_PATH BUNDLE_GEMFILE TERM_SESSIONS LANG GOFLAGS npm_config_cache`) {
		if secret(name, "x") {
			t.Errorf("%s is withheld", name)
		}
	}
}

// A secret is known by its value, under any name.
func TestVariablesThatAreSecretsByValue(t *testing.T) {
	letters := "Aa0Bb1Cc2Dd3Ee4Ff5Gg6Hh7Ii8Jj9Kk0Ll1Mm2"
	for _, value := range []string{
		"ghp_" + letters, "gho_" + letters, "github_pat_" + letters, "glpat-" + letters, "sk-ant-api03-" + letters, "sk-" + letters, "sk-proj-" + letters,
		"xoxb-12-34-" + letters, "xoxp-" + letters, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
		"Bearer ghp_" + letters, "-Dtoken=glpat-" + letters + " -Xmx1g", "{\"key\":\"AKIAIOSFODNN7EXAMPLE\"}", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----BEGIN CERTIFICATE-----\nx\n-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----",
		"AIza" + letters, "npm_" + letters, "hf_" + letters, "https://user:pw@host/", "postgres://u:p@h/db",
	} {
		if !secret("X", value) {
			t.Errorf("%q passes", value)
		}
	}
	for _, value := range []string{
		"", "sk-learn", "task-1234567890abcdefgh", "sk-some-long-package-name", "npm_config_cache", "AKIA", "NAKIAIOSFODNN7EXAMPLE", "eyJ", "heyJude.eyJ", "glpat", "ghp_",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nx", "/usr/bin:/bin", "ssh://git@host/repo", "disk-0123456789abcdef0",
		"sha256-Aa0Bb1Cc2Dd3Ee4Ff5Gg6", "4f9e0b1c2d3e4f5061728394a5b6c7d8e9f00112",
	} {
		if secret("X", value) {
			t.Errorf("%q is withheld", value)
		}
	}
}
