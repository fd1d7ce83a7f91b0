package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// unknownHeader returns the name of a header that is neither known nor in further, which is the policy's; "": all are. At a host whose requests are
// judged, a header may choose another method, path, host, tenant, schema, operation or identity than those that the rule sees, and lists of headers
// that do are never complete.
func unknownHeader(h http.Header, further []string) string {
	for name := range h {
		if !slices.Contains(knownHeaders, strings.ToLower(name)) && !slices.ContainsFunc(further, func(f string) bool { return strings.EqualFold(f, name) }) {
			return name
		}
	}
	return ""
}

// knownHeaders say how a body or an answer is written, what is cached, who asks by which secret, and what belongs together in logs. They are the fields
// of HTTP, Fetch, WebSocket, Trace Context and gRPC-Web, and single ones of common clients.
var knownHeaders = strings.Fields(`accept accept-charset accept-datetime accept-encoding accept-language accept-patch accept-ranges access-control-request-headers access-control-request-method access-control-request-private-network
	authorization cache-control content-digest content-disposition content-encoding content-language content-length content-location content-md5 content-range content-type cookie date depth device-memory digest dnt downlink dpop early-data
	ect expect from if-match if-modified-since if-none-match if-range if-unmodified-since keep-alive last-event-id max-forwards origin pragma prefer priority range referer repr-digest rtt save-data
	sec-ch-prefers-color-scheme sec-ch-ua sec-ch-ua-arch sec-ch-ua-bitness sec-ch-ua-full-version-list sec-ch-ua-mobile sec-ch-ua-model sec-ch-ua-platform sec-ch-ua-platform-version sec-fetch-dest sec-fetch-mode sec-fetch-site
	sec-fetch-storage-access sec-fetch-user sec-gpc sec-purpose sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version service-worker signature signature-input te traceparent tracestate baggage upgrade
	upgrade-insecure-requests user-agent via viewport-width want-content-digest want-digest want-repr-digest warning width connection
	api-key apikey idempotency-key job-token private-token xi-api-key x-access-token x-api-key x-apikey x-api-token x-api-version x-auth-email x-auth-key x-auth-token x-client-request-id x-client-version x-cloud-trace-context x-consul-token
	x-correlation-id x-csrf-token x-csrftoken x-do-not-track x-figma-token x-nomad-token x-redmine-api-key x-registry-auth x-request-id x-requested-with x-sentry-auth x-shopify-access-token x-trace-id x-user-agent x-xsrf-token
	x-b3-flags x-b3-parentspanid x-b3-sampled x-b3-spanid x-b3-traceid x-datadog-parent-id x-datadog-sampling-priority x-datadog-trace-id
	anthropic-beta anthropic-dangerous-direct-browser-access anthropic-version openai-beta notion-version stripe-version time-zone mcp-protocol-version mcp-session-id docker-distribution-api-version git-protocol
	npm-auth-type npm-command npm-in-ci npm-session pacote-integrity pacote-pkg-id pacote-req-type pacote-version grpc-accept-encoding grpc-encoding grpc-timeout x-grpc-web connect-protocol-version connect-timeout-ms
	amz-sdk-invocation-id amz-sdk-request x-amz-content-sha256 x-amz-date x-amz-security-token x-amz-user-agent x-amzn-trace-id x-gh-cache-ttl x-github-api-version x-gitlab-token x-goog-api-client x-goog-api-key x-initiator
	x-ms-client-request-id x-ms-date x-ms-version x-slack-no-retry x-stainless-arch x-stainless-async x-stainless-helper-method x-stainless-lang x-stainless-os x-stainless-package-version x-stainless-read-timeout x-stainless-retry-count
	x-stainless-runtime x-stainless-runtime-version x-stainless-timeout x-supabase-api-version x-terraform-version x-title x-vault-request x-vault-token x-vault-wrap-ttl`)
