package sandbox

import (
	"path"
	"slices"
	"strings"
)

// secretNames are the variables that do not pass by a pattern, in upper case.
// First what holds secrets, then handles to the host's services, then what
// changes how programs load.
var secretNames = []string{
	"*KEY", "*KEY_ID", "*TOKEN", "*SECRET", "*SECRETS", "*PASSWORD", "*PASSWD", "*PASSPHRASE", "*CREDENTIAL", "*CREDENTIALS",
	"*_PASS", "*_PWD", "*_PAT", "*_AUTH", "*_AUTHTOKEN", "*_DSN", "*_COOKIE", "*_WEBHOOK", "*_WEBHOOK_URL", "*CONNECTION_STRING",
	"*_KEY_*", "*_TOKEN_*", "*_SECRET_*", "*_PASSWORD_*", "*:_AUTH*",
	"AWS_*", "GOOGLE_*", "AZURE_*", "OPENAI_*", "ANTHROPIC_*", "GITHUB_*", "GITLAB_*", "GH_*", "HF_*", "VAULT_*", "CLOUDSDK_*",
	"KUBECONFIG", "TF_VAR_*", "TF_CLI_CONFIG_FILE", "NETRC", "HISTFILE", "PGPASSFILE", "PGSERVICEFILE",

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
//
// It cannot know a secret under an innocent name. Of values it recognises two
// forms, which do not pass by a pattern either: a URL with a user's name or
// password before its host, and a private key in PEM form.
func SecretNames() []string { return slices.Clone(secretNames) }

// secret says whether a variable stays out unless it is listed literally.
func secret(name, value string) bool {
	name = strings.ToUpper(name)
	for _, pattern := range secretNames {
		if matchName(pattern, name) {
			return true
		}
	}
	return strings.Contains(value, "PRIVATE KEY-----") || urlWithUser(value)
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

// urlWithUser reports whether a URL in s has a user before its host, but for
// that of ssh, which is a login's name and no secret.
func urlWithUser(s string) bool {
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

// homeSecrets lie in a home directory. What of them exists is in the presets'
// Hide, so that it stays out even of a workspace that contains it.
var homeSecrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".config/gcloud", ".kube", ".docker", ".git-credentials", ".config/git/credentials", ".netrc", ".npmrc", ".pypirc",
	".cargo/credentials", ".cargo/credentials.toml", ".vault-token", ".terraform.d", ".terraformrc", ".config/op", ".config/gh", ".config/hub", ".config/glab-cli",
	".config/containers", ".config/rclone", ".config/sops", ".password-store", ".local/share/password-store", ".1password", ".local/share/keyrings", ".local/share/kwalletd", ".pki", ".m2/settings.xml",
	".m2/settings-security.xml", ".gradle/gradle.properties", ".gem/credentials", ".bundle/config", ".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet",
	".config/pypoetry/auth.toml", ".condarc", ".yarnrc", ".yarnrc.yml", ".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	".bash_history", ".zsh_history", ".history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
	".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo", ".wget-hsts", ".Xauthority", ".ICEauthority", ".claude", ".claude.json", ".codex", ".gemini", ".config/github-copilot",
}

// systemSecrets lie in what the presets show of the system.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/sudo.conf", "/etc/security/opasswd",
	"/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/krb5.keytab", "/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn",
	"/etc/ipsec.secrets", "/etc/ipsec.d/private", "/etc/ppp", "/etc/wpa_supplicant", "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/ceph",
	"/etc/salt", "/etc/puppetlabs", "/etc/mysql/debian.cnf", "/etc/crypttab", "/etc/luks", "/etc/cloud", "/etc/cni", "/etc/vault.d",
}

// otherPlaces are what the presets never show, even to a caller who adds a
// directory that contains them: homes, logs, and sockets of services.
var otherPlaces = []string{"/home", "/root", "/var/log", "/run", "/var/run", "/var/spool", "/var/mail", "/var/backups", "/lost+found"}
