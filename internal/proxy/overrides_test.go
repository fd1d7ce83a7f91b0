package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// sentByClients are names of headers that common clients send: curl, wget, browsers, git,
// npm, pip, cargo, docker, the AWS, Google and Azure SDKs, gRPC-Web, OpenAI's and
// Anthropic's libraries, gh, vault, terraform.
const sentByClients = `Accept Accept-Encoding Accept-Language Access-Control-Request-Headers Access-Control-Request-Method Api-Key Anthropic-Beta Anthropic-Dangerous-Direct-Browser-Access Anthropic-Version Apikey Authorization
Cache-Control Content-Encoding Content-Language Content-Length Content-MD5 Content-Range Content-Type Cookie Date Depth Device-Memory DNT Docker-Distribution-Api-Version Downlink DPoP Expect From Git-Protocol
Grpc-Accept-Encoding Grpc-Encoding Grpc-Timeout Idempotency-Key If-Match If-Modified-Since If-None-Match If-Range If-Unmodified-Since Job-Token Last-Event-Id MCP-Protocol-Version Mcp-Session-Id
Notion-Version Npm-Auth-Type Npm-Command Npm-In-Ci Npm-Session OpenAI-Beta Origin Pacote-Integrity Pacote-Pkg-Id Pacote-Req-Type Pacote-Version Pragma Prefer Priority Private-Token
Range Referer Save-Data Sec-Ch-Ua Sec-Ch-Ua-Mobile Sec-Ch-Ua-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-Gpc Sec-Purpose Sec-WebSocket-Key Sec-WebSocket-Protocol Sec-WebSocket-Version Stripe-Version
Time-Zone Traceparent Tracestate Upgrade-Insecure-Requests User-Agent Want-Digest Xi-Api-Key
X-Amz-Content-Sha256 X-Amz-Date X-Amz-Security-Token X-Amz-User-Agent Amz-Sdk-Invocation-Id Amz-Sdk-Request X-Amzn-Trace-Id X-Api-Key X-Auth-Token X-B3-Traceid X-Client-Request-Id X-Client-Version X-Cloud-Trace-Context X-Correlation-Id X-Csrf-Token
X-Datadog-Trace-Id X-Figma-Token X-GitHub-Api-Version X-Gh-Cache-Ttl X-Gitlab-Token X-Goog-Api-Client X-Goog-Api-Key X-Grpc-Web X-Initiator X-Ms-Client-Request-Id X-Ms-Date X-Ms-Version X-Registry-Auth
X-Requested-With X-Request-Id X-Shopify-Access-Token X-Slack-No-Retry X-Stainless-Arch X-Stainless-Helper-Method X-Stainless-Lang X-Stainless-Os X-Stainless-Package-Version X-Stainless-Retry-Count X-Stainless-Runtime X-Stainless-Runtime-Version X-Stainless-Timeout
X-Supabase-Api-Version X-Terraform-Version X-Title X-User-Agent X-Vault-Request X-Vault-Token X-Vault-Wrap-TTL X-Xsrf-Token`

// obeyed are names by which some server, framework or proxy takes another method, path, host, tenant, schema, operation or identity
// than the request's own.
const obeyed = `Script_Name SCRIPT_NAME Script-Name Path_Info Path-Info PATH_INFO Request_Uri Request-Uri X-Script-Name X-Forwarded-Prefix X-Forwarded-Uri X-Forwarded-Path X-Forwarded-Method X-Forwarded-Host X-Forwarded-Server X.Forwarded.Host Forwarded
X-Envoy-Original-Path X-Envoy-Original-Method X-Http-Path-Override X-Request-Uri X-Matched-Path X-Invoke-Path X-Invoke-Query X-Middleware-Subrequest X-Middleware-Rewrite X-Nextjs-Rewrite X-Now-Route-Matches X-Sendfile-Type X-Accel-Mapping X-Accel-Redirect
X-Http-Method-Override X_Http-Method_Override X!HTTP.Method*Override X-Http-Method X-HttpMethod X-Method X-Method-Override X-Original-Method X-Original-Url X-Original-Uri X-Original-Host X-Override-Url X-Rewrite-Url X-Rewrite-Uri X-Real-Url X-Real-Host
X-Host X-Http-Host-Override X-Http-Destinationurl X-Backend-Host X-Waws-Unencoded-Url X-Ms-Original-Url X-Arr-Original-Url X-Proxy-Url X-Replaced-Path X-Forward-Uri X-Base-Url Base-Url Destination Http-Method Method Verb Front-Host Original-Url Uri Url
Content_Length Transfer.Encoding Content_Type Api_Key X-Amz-Copy-Source X-Ms-Copy-Source X-Ms-Rename-Source X-Unknown X-Vault-Namespace X-Vault-Path X-Consul-Namespace X-Databricks-Org-Id X-Databricks-Workspace-Id X-Ms-Tenant-Id X-Elastic-Tenant
Accept-Profile Content-Profile Stripe-Account Stripe-Context OpenAI-Organization OpenAI-Project Impersonate-User Impersonate-Group Impersonate-Uid SOAPAction X-Amz-Target Remote-User Remote-Groups X-Remote-User X-MS-Client-Principal X-Ms-Client-Principal-Id
X-Forwarded-For X-Forwarded-User X-Forwarded-Email X-Auth-Request-User X-Real-Ip True-Client-Ip Cf-Connecting-Ip Client-Ip X-Client-Ip X-Client-Cert Ssl-Client-Cert X-Goog-User-Project X-Goog-Iap-Jwt-Assertion X-Goog-Authenticated-User-Email
X-Hasura-Role X-Parse-Application-Id X-Atlassian-Token X-Graphql-Operation X-Clickhouse-User X-Clickhouse-Database X-Snowflake-Role X-Openai-Organization X-Docker-Namespace X-Elastic-Project Notion-Workspace Role Tenant Schema Project Sudo`

// TestHeadersThatCouldOverrideAreRefused where requests are judged, and what clients send
// passes.
func TestHeadersThatCouldOverrideAreRefused(t *testing.T) {
	list := rules(t, policy.RequestRule{Host: "api.example.com", Methods: []string{"GET"}, Paths: []string{"/public/"}}, policy.RequestRule{Host: "further.example.com", Headers: []string{"X-Unknown", "api_key"}})
	ask := func(host, name string, fields ...string) *Refusal {
		r, err := http.NewRequest("GET", "https://"+host+"/public/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header[name] = []string{"/admin"} // in this spelling
		return list.judge(r, hostOf(t, host), 443, fields...)
	}
	for name := range strings.FieldsSeq(sentByClients) {
		if no := ask("api.example.com", name); no != nil {
			t.Errorf("%s: %v", name, no)
		}
	}
	for name := range strings.FieldsSeq(obeyed) {
		if no := ask("api.example.com", name); no == nil || !strings.Contains(no.Why, name) {
			t.Errorf("%s: %v", name, no)
		}
		if no := ask("free.example.com", name); no != nil {
			t.Errorf("%s to a host without a rule: %v", name, no)
		}
	}
	for _, name := range []string{"X-Unknown", "x-unknown", "Api_Key"} {
		if no := ask("further.example.com", name); no != nil {
			t.Errorf("%s, which the rule allows: %v", name, no)
		}
	}
	if no := ask("api.example.com", "Api_key", "api_key"); no != nil {
		t.Errorf("a credential's header: %v", no)
	}
	for _, name := range []string{"", "a b", "Content-Length", "transfer-encoding", "Host"} {
		if _, err := compileRequests([]policy.RequestRule{{Host: "a.example", Headers: []string{name}}}); err == nil {
			t.Errorf("the rule may allow %q", name)
		}
	}
}
