package presets

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
	".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface", ".config/doctl", ".config/hcloud", ".config/fly", ".fly", ".config/netlify", ".netlify",
	".config/linode-cli", ".config/scw", ".config/heroku", ".config/stripe", ".config/ngrok", ".ngrok2", ".config/solana", ".oci", ".bluemix",
	".databrickscfg", ".snowsql", ".snowflake", ".config/snowflake", ".kaggle", ".config/kaggle", ".authinfo", ".authinfo.gpg", ".msmtprc", ".config/msmtp", ".fetchmailrc", ".mbsyncrc",
	".dotnet/corefx", ".microsoft/usersecrets", ".aspnet", ".config/Bitwarden", ".config/keepassxc", ".putty", ".erlang.cookie", ".config/Signal",
}

// systemSecrets lie in what the presets show of the system.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/sudo.conf", "/etc/security/opasswd",
	"/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/krb5.keytab", "/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn",
	"/etc/ipsec.secrets", "/etc/ipsec.d/private", "/etc/ppp", "/etc/wpa_supplicant", "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/ceph",
	"/etc/salt", "/etc/puppetlabs", "/etc/mysql/debian.cnf", "/etc/crypttab", "/etc/luks", "/etc/cloud", "/etc/cni", "/etc/vault.d",
}

// AlwaysHidden are directories that the presets hide even if a caller adds a
// directory that contains them: homes, logs, and sockets of services.
var AlwaysHidden = []string{"/nix/var", "/home", "/root", "/var/log", "/run", "/var/run", "/var/spool", "/var/mail", "/var/backups", "/lost+found"}
