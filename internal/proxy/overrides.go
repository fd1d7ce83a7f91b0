package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// overrideHeader returns the name of a header by which a server, or what stands before it,
// could be told another method, path or host than those that are judged; "": there is
// none. Lists of such headers are never complete, so it is turned round:
//
//   - A name of letters, digits and hyphens alone may pass: what hands headers on as
//     variables (CGI, WSGI, Rack, PHP) makes one of - and _, and some of every sign, so
//     that SCRIPT_NAME is a variable of gunicorn's and Content_Length a second length.
//   - A name with a word of methods, paths, hosts or tenants in it does not pass.
//   - Of the names that begin with X-, which have no registry, those pass that are known.
//
// Names in further are the policy's, and pass.
func overrideHeader(h http.Header, further []string) string {
	for name := range h {
		if !slices.ContainsFunc(further, func(f string) bool { return strings.EqualFold(f, name) }) && !harmless(strings.ToLower(name)) {
			return name
		}
	}
	return ""
}

// harmless judges a name in lower case.
func harmless(name string) bool {
	if slices.Contains(knownHeaders, name) {
		return true
	}
	if strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' }) {
		return false
	}
	if slices.ContainsFunc(overridingParts, func(part string) bool { return strings.Contains(name, part) }) {
		return false
	}
	for word := range strings.SplitSeq(name, "-") {
		if slices.Contains(overridingWords, word) {
			return false
		}
	}
	return !strings.HasPrefix(name, "x-") || slices.ContainsFunc(knownX, func(p string) bool { return strings.HasPrefix(name, p) })
}

// overridingWords are words of names by which servers and proxies route, and
// overridingParts stand in them within words too.
var (
	overridingWords = []string{"url", "urls", "uri", "uris", "path", "paths", "pathinfo", "host", "hosts", "hostname", "verb", "script", "route", "router", "redirect", "prefix", "original", "orig",
		"destination", "source", "accel", "sendfile", "mapping", "location", "subrequest", "namespace", "tenant", "workspace", "org"}
	overridingParts = []string{"method", "override", "rewrite", "rewritten", "forwarded"}
)

// knownHeaders have such a word, or begin with X-, and tell a server nothing of where a
// request goes.
var knownHeaders = []string{
	"access-control-request-method", // asks what a browser may (Fetch)
	"x-forwarded-for", "x-forwarded-proto", "x-forwarded-port", "x-real-ip",
	"x-api-key", "x-apikey", "x-api-token", "x-api-version", "x-access-token", "x-auth-email", "x-auth-key", "x-auth-token", "x-consul-token", "x-csrf-token", "x-csrftoken", "x-do-not-track",
	"x-figma-token", "x-idempotency-key", "x-initiator", "x-nomad-token", "x-nonce", "x-redmine-api-key", "x-requested-with", "x-sentry-auth", "x-session-id", "x-signature",
	"x-stainless-helper-method", "x-timestamp", "x-title", "x-trace-id", "x-user-agent", "x-xsrf-token",
	"x-vault-request", "x-vault-token", "x-vault-wrap-ttl", // and no x-vault-namespace, which goes before the path
}

// knownX are beginnings of names that clients of one service, or of one protocol, send. Of none is it known that the service takes a part of the
// path, or whose data is meant, from such a header, but where overridingWords has a word of its name (X-Databricks-Org-Id).
var knownX = []string{
	"x-algolia-", "x-amz-", "x-amzn-", "x-anthropic-", "x-atlassian-", "x-b3-", "x-bce-", "x-checksum-", "x-clickhouse-", "x-client-", "x-cloud-trace-", "x-correlation-", "x-cos-", "x-databricks-",
	"x-datadog-", "x-device-", "x-docker-", "x-elastic-", "x-firebase-", "x-gh-", "x-github-", "x-gitlab-", "x-goog-", "x-google-", "x-grpc-", "x-hf-", "x-ibm-", "x-jfrog-", "x-linear-", "x-ms-", "x-newrelic-",
	"x-nuget-", "x-openai-", "x-oss-", "x-registry-", "x-request-id", "x-shopify-", "x-slack-", "x-snowflake-", "x-stainless-", "x-supabase-", "x-tc-", "x-terraform-", "x-twilio-", "x-xet-",
}
