package clientenv

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// VariablesOptions say where a tool finds its way out.
type VariablesOptions struct {
	HTTP         netip.AddrPort // of the proxy, as seen from inside; zero: without
	Key          string         // "": the proxies ask for none
	Bundle       string         // path inside of the trust bundle; "": none
	Store        string         // path inside of a JVM's trust store; "": none
	Denies       bool           // the proxies deny every host: nothing is worth trying twice
	ProxyCommand string         // with what git's ssh connects, %h and %p in it; "": as it is configured
}

// A variable is one that tools read. What it holds of the options is a function;
// an empty value leaves it unset.
type variable struct {
	name    string
	value   func(VariablesOptions) string
	readers string
}

// variables are all that [Variables] sets, in the order of the documentation.
//
// Not here, and why: PIP_PROXY, since pip then asks the proxy for an index on
// loopback too; GOPROXY, which names module servers and is the user's; a SOCKS
// address in ALL_PROXY, since httpx, and with it most API clients in Python, fails at
// the sight of socks5h; SSL_CERT_DIR, which would be searched besides the bundle;
// COMPOSER_CAFILE and BUNDLE_SSL_CA_CERT, whose readers read SSL_CERT_FILE.
var variables = []variable{
	{"HTTP_PROXY", proxyURL, "curl (https only), Go, Node, Bun, Deno, Python's urllib, requests and httpx, uv, Ruby, .NET"},
	{"http_proxy", proxyURL, "curl, wget, git, apt, aria2, lftp, Python, Ruby, gem, Composer, Perl's HTTP::Tiny, gRPC, Chromium"},
	{"HTTPS_PROXY", proxyURL, "curl, git, Go (gh, terraform, kubectl, helm), Node, npm, pnpm, Bun, Deno, pip, uv, poetry, conda, cargo, rustup, Python, Ruby, .NET, aws, az, gcloud"},
	{"https_proxy", proxyURL, "wget and the same"},
	{"ALL_PROXY", proxyURL, "curl, git, Python's httpx, Deno, for every other scheme"},
	{"all_proxy", proxyURL, "the same"},
	{"NO_PROXY", noProxy, "the readers of HTTP_PROXY: servers on loopback inside are reached directly"},
	{"no_proxy", noProxy, "the readers of http_proxy"},
	{"NODE_USE_ENV_PROXY", whenProxied("1"), "Node 22.21, 24 and later: fetch and http read HTTP_PROXY"},
	{"npm_config_proxy", proxyURL, "npm, pnpm before 11, Yarn 1: before what an .npmrc says"},
	{"npm_config_https_proxy", proxyURL, "npm, pnpm before 11, Yarn 1"},
	{"npm_config_noproxy", noProxy, "npm, pnpm before 11"},
	{"YARN_HTTP_PROXY", proxyURL, "Yarn 2 and later"},
	{"YARN_HTTPS_PROXY", proxyURL, "Yarn 2 and later"},
	{"GLOBAL_AGENT_HTTP_PROXY", proxyURL, "programs for Node that use global-agent, which reads no other"},
	{"GLOBAL_AGENT_NO_PROXY", noProxy, "the same"},
	{"ELECTRON_GET_USE_PROXY", whenProxied("true"), "what fetches Electron: it reads HTTPS_PROXY then"},
	{"CARGO_HTTP_PROXY", proxyURL, "cargo: before what its config.toml says"},
	{"PERL_LWP_ENV_PROXY", whenProxied("1"), "Perl's LWP: it reads http_proxy then"},
	{"MOJO_PROXY", whenProxied("1"), "Perl's Mojolicious: the same"},
	{"RSYNC_PROXY", proxyAddress, "rsync, for rsync://"},
	{"GIT_SSH_COMMAND", sshCommand, "git, over ssh; where there is no ssh_config that all of ssh reads"},
	{"JAVA_TOOL_OPTIONS", javaOptions, "every JVM: proxies and trust store as properties; it says so on standard error"},
	{"PIP_RETRIES", whenDenied("1"), "pip, where no host is allowed: else it asks six times, in 8 seconds, and without a second time it does not print why"},
	{"npm_config_fetch_retries", whenDenied("0"), "npm, pnpm before 11, where no host is allowed"},
	{"CARGO_NET_RETRY", whenDenied("0"), "cargo, where no host is allowed"},
	{"UV_HTTP_RETRIES", whenDenied("0"), "uv, where no host is allowed"},
	{"SSL_CERT_FILE", bundlePath, "OpenSSL and what is linked to it, Python's ssl and httpx, Ruby, gem, bundler, PHP, Composer, Perl, Go, .NET, CMake, uv, rustup and others with rustls-native-certs"},
	{"CURL_CA_BUNDLE", bundlePath, "curl"},
	{"REQUESTS_CA_BUNDLE", bundlePath, "Python's requests, poetry, conda, mamba, az"},
	{"PIP_CERT", bundlePath, "pip"},
	{"GIT_SSL_CAINFO", bundlePath, "git"},
	{"NODE_EXTRA_CA_CERTS", bundlePath, "Node, npm, pnpm, Bun, Electron's Node"},
	{"npm_config_cafile", bundlePath, "npm, pnpm before 11, Yarn 1"},
	{"YARN_HTTPS_CA_FILE_PATH", bundlePath, "Yarn 2 and later"},
	{"CARGO_HTTP_CAINFO", bundlePath, "cargo"},
	{"AWS_CA_BUNDLE", bundlePath, "aws, boto3, the AWS SDKs"},
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", bundlePath, "gcloud"},
	{"DENO_CERT", bundlePath, "Deno"},
	{"HTTPLIB2_CA_CERTS", bundlePath, "Python's httplib2"},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", bundlePath, "gRPC's C core: Python, Ruby, PHP, C++"},
	{"HEX_CACERTS_PATH", bundlePath, "mix, for Elixir and Erlang"},
	{"NIX_SSL_CERT_FILE", bundlePath, "Nix"},
	{"PERL_LWP_SSL_CA_FILE", bundlePath, "Perl's LWP"},
}

// Sets reports whether a variable is one of those that [Variables] sets.
func Sets(name string) bool {
	return slices.ContainsFunc(variables, func(v variable) bool { return v.name == name })
}

// NamesProxy reports whether a variable of this name leads programs to a proxy: one of [Variables] or another, such as FTP_PROXY. JAVA_TOOL_OPTIONS passes to
// no tool.
func NamesProxy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_proxy") }

// Variables returns the environment that makes tools use the proxies and trust
// the bundle, as NAME=value, sorted.
func Variables(o VariablesOptions) []string {
	var list []string
	for _, v := range variables {
		if s := v.value(o); s != "" {
			list = append(list, v.name+"="+s)
		}
	}
	slices.Sort(list)
	return list
}

// proxyUser is the user's name beside the key; the proxies do not look at it.
const proxyUser = "holdfast"

func proxyURL(o VariablesOptions) string {
	if !o.HTTP.IsValid() {
		return ""
	}
	u := url.URL{Scheme: "http", Host: o.HTTP.String()}
	if o.Key != "" {
		u.User = url.UserPassword(proxyUser, o.Key)
	}
	return u.String()
}

func proxyAddress(o VariablesOptions) string { return strings.TrimPrefix(proxyURL(o), "http://") }

// noProxy is what no proxy is asked for. Every form has to be one that each reader
// takes: httpx fails at [::1], and networks are known to few. 0.0.0.0 is what servers print that listen at every address.
func noProxy(o VariablesOptions) string { return whenProxied(noProxyHosts)(o) }

const noProxyHosts = "localhost,127.0.0.1,0.0.0.0,::1"

func whenProxied(s string) func(VariablesOptions) string {
	return func(o VariablesOptions) string {
		if !o.HTTP.IsValid() {
			return ""
		}
		return s
	}
}

// whenDenied sets a variable where every host is denied.
func whenDenied(s string) func(VariablesOptions) string {
	return func(o VariablesOptions) string {
		if !o.Denies {
			return ""
		}
		return s
	}
}

func bundlePath(o VariablesOptions) string { return o.Bundle }

// sshCommand quotes for the shell by which git runs it. What is quoted ssh hands to
// another shell.
func sshCommand(o VariablesOptions) string {
	if o.ProxyCommand == "" {
		return ""
	}
	return "ssh -o " + quoted("ProxyCommand="+o.ProxyCommand)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// StorePassword is the password of the JVM's trust store that Store names: the one that
// the JDK's own has. It guards nothing; the store holds no secret.
const StorePassword = "changeit"

// javaOptions sets what the JDK's own clients read, and has Maven read it as well:
// from 3.9 on its transport does so only when it is told to. They have no property for a
// proxy's password: where a key is asked for they are refused, with a 407. A JVM
// splits the variable at spaces, so a path with one is quoted.
func javaOptions(o VariablesOptions) string {
	var list []string
	if o.HTTP.IsValid() && !o.Denies { // every JVM would say so on standard error
		for _, scheme := range []string{"http", "https"} {
			list = append(list, fmt.Sprintf("-D%s.proxyHost=%s", scheme, o.HTTP.Addr()), fmt.Sprintf("-D%s.proxyPort=%d", scheme, o.HTTP.Port()))
		}
		list = append(list, "-Dhttp.nonProxyHosts=localhost|127.*|0.0.0.0|[::1]", "-Daether.connector.http.useSystemProperties=true")
	}
	if o.Store != "" {
		path := "-Djavax.net.ssl.trustStore=" + o.Store
		if strings.ContainsAny(path, " \t") {
			path = `"` + path + `"`
		}
		list = append(list, path, "-Djavax.net.ssl.trustStoreType=PKCS12", "-Djavax.net.ssl.trustStorePassword="+StorePassword)
	}
	return strings.Join(list, " ")
}
