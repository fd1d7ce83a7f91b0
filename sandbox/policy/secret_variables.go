package policy

import (
	"path"
	"slices"
	"strings"
)

// secretWords make a variable a secret where a part of its name ends in one: the
// word, then the end or what is no letter. API_KEY, APIKEY and KEY1_OLD have such a
// part, KEYBOARD has none.
var secretWords = []string{
	"KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PWD", "PW",
	"CRED", "CREDS", "CREDENTIAL", "CREDENTIALS", "JWT", "SESSION", "SESSIONID", "SESSID",
}

// plainWords end in a secret word and mean something else.
var plainWords = []string{"COMPASS", "BYPASS", "MONKEY", "MONKEYS", "HOTKEY", "HOTKEYS", "TURKEY", "SACRED"}

// plainNames are the variables that are no secret in spite of a word: directories,
// kinds of sessions, numbers.
var plainNames = []string{"PWD", "OLDPWD", "XDG_SESSION_*", "DESKTOP_SESSION", "GDMSESSION", "*MAX*TOKENS"}

// secretNames are further variables that do not pass by a pattern, in upper case: what
// holds secrets, then what is none and stays out for another reason.
var secretNames = slices.Concat(secretHolders, hostNames)

// secretHolders usually hold secrets.
var secretHolders = []string{
	"*_PAT", "*_AUTH", "*_AUTHTOKEN", "*_DSN", "*_COOKIE", "*_WEBHOOK", "*_WEBHOOK_URL", "*CONNECTION_STRING*", "*CONNECTIONSTRING*", "*:_AUTH*", "BUNDLE_*__*",
	"AWS_*", "GOOGLE_*", "AZURE_*", "OPENAI_*", "ANTHROPIC_*", "GITHUB_*", "GITLAB_*", "GH_*", "HF_*", "VAULT_*", "CLOUDSDK_*",
	"KUBECONFIG", "TF_VAR_*", "TF_CLI_CONFIG_FILE", "NETRC", "HISTFILE", "PGPASSFILE", "PGSERVICEFILE",
}

// hostNames are handles to the host's services, then what changes how programs load.
var hostNames = []string{
	"SSH_*", "GPG_*", "DBUS_*", "DOCKER_*", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_*", "XAUTHORITY", "ICEAUTHORITY",
	"SESSION_MANAGER", "GNOME_KEYRING_*", "KRB5*", "TMUX", "TMUX_PANE", "STY", "VSCODE_*", "NOTIFY_SOCKET", "JOURNAL_STREAM", "LISTEN_*",

	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "MALLOC_*", "GIT_*",
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_FUNC_*", "BASH_LOADABLES_PATH", "PROMPT_COMMAND", "PS4", "IFS", "CDPATH", "GLOBIGNORE", "ZDOTDIR", "FPATH",
	"NODE_OPTIONS", "NODE_PATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONPATH", "PYTHONINSPECT", "PYTHONBREAKPOINT",
	"PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"LUA_INIT*", "LESSOPEN", "LESSCLOSE", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC*",
}

// SecretNames returns the patterns, of path.Match, for variables that [Env].Pass
// lets through only when it lists them literally: those that usually hold
// secrets ("*TOKEN", "AWS_*"), that lead to services of the host
// ("SSH_AUTH_SOCK"), or that change how programs load ("LD_*", "GIT_*",
// "NODE_OPTIONS"). Names are compared without regard to case. It returns a copy.
// A few names that match pass all the same, since they mean something else: PWD,
// OLDPWD, DESKTOP_SESSION, XDG_SESSION_TYPE, MAX_TOKENS and their like.
//
// It cannot know a secret under an innocent name. Of values it recognises some
// forms, which do not pass by a pattern either: a URL with a user's name or
// password before its host, a private key in PEM form, and tokens of a known
// shape, such as ghp_..., glpat-..., sk-..., xoxb-..., AKIA... and JSON web tokens.
func SecretNames() []string {
	var out []string
	for _, word := range secretWords {
		out = append(out, "*"+word, "*"+word+"[^A-Z]*")
	}
	return append(out, secretNames...)
}

// secret says whether a variable stays out unless it is listed literally.
func secret(name, value string) bool {
	return secretName(strings.ToUpper(name)) || secretValue(value)
}

func secretName(name string) bool {
	return isNamed(name, secretNames)
}

func isNamed(name string, patterns []string) bool {
	matches := func(pattern string) bool { return matchName(pattern, name) }
	return hasSecretWord(name) && !slices.ContainsFunc(plainNames, matches) || slices.ContainsFunc(patterns, matches)
}

// HoldsSecret reports whether a variable usually holds a secret, by those of [SecretNames]
// that do, or by the form of its value. What only changes how programs load, such as
// GIT_PAGER, or leads to a service of the host, such as DISPLAY, does not; an empty
// value never does.
func HoldsSecret(name, value string) bool {
	return value != "" && (isNamed(strings.ToUpper(name), secretHolders) || secretValue(value))
}

// hasSecretWord is a match of the patterns that SecretNames makes of secretWords, but
// for plainWords.
func hasSecretWord(name string) bool {
	for _, word := range secretWords {
		for end := 0; ; {
			i := strings.Index(name[end:], word)
			if i < 0 {
				break
			}
			end += i + len(word)
			ends := func(plain string) bool { return strings.HasSuffix(name[:end], plain) }
			if (end == len(name) || name[end] < 'A' || name[end] > 'Z') && !slices.ContainsFunc(plainWords, ends) {
				return true
			}
		}
	}
	return false
}

// matchName is path.Match, but "*" matches slashes too: bash writes functions
// as BASH_FUNC_a/b%%, npm reads npm_config_//host/:_authToken.
func matchName(pattern, name string) bool {
	if !strings.ContainsAny(pattern, `?[\`) {
		return matchStars(pattern, name)
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

// matchStars is matchName for a pattern without other signs than "*". Every
// start of a command matches each variable against some hundred of them, which
// path.Match takes 0.4 ms for.
func matchStars(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	for ok {
		var piece string
		if piece, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(name, piece)
		}
		_, name, ok = strings.Cut(name, piece)
	}
	return false
}
