package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestADenialSaysWhatWouldHelp: the program inside, or the model that drives it, must
// not be sent to the policy's owner for what it can do by itself.
func TestADenialSaysWhatWouldHelp(t *testing.T) {
	all, err := compileCredentials([]policy.Credential{{Name: "KEY", Secret: "value-of-the-user", Hosts: []string{"api.example"}, Place: "bearer"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := compileRequests([]policy.RequestRule{{Host: "api.example", Methods: []string{"GET"}, Paths: []string{"/v1/"}}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(url, name, value string) *http.Request {
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(name, value)
		return r
	}
	placeholder := "Bearer " + all.placeholders()["KEY"]
	api, other := mustHost(t, "api.example"), mustHost(t, "other.example")
	const owner = "to allow it: the policy's owner"
	for _, test := range []struct {
		name    string
		refusal *Refusal
		want    string
	}{
		{"a placeholder in clear text", all.judge(request("http://api.example/", "Authorization", placeholder), api, 80, false), "what would work: ask by https."},
		{"a placeholder for another host", all.judge(request("https://other.example/", "Authorization", placeholder), other, 443, true), "what would work: leave the placeholder out of requests to this host."},
		{"a path of several readings", rules.judge(request("https://api.example/v1/%2e%2e/x", "Accept", "b"), api, 443), "what would work: write the path plainly."},
		{"a header that overrides", rules.judge(request("https://api.example/v1/x", "X-Http-Method", "PUT"), api, 443), "what would work: leave the header out, or have the policy's owner name it in the rule's Headers."},
		{"a path that is not allowed", rules.judge(request("https://api.example/v2", "Accept", "b"), api, 443), owner},
		{"a host that nothing names", &Refusal{Host: "other.example", Port: 443, Why: "no entry"}, owner},
	} {
		if test.refusal == nil {
			t.Errorf("%s: allowed", test.name)
			continue
		}
		text := test.refusal.explain("host:443")
		if !strings.Contains(text, test.want) || strings.Contains(text, owner) != (test.want == owner) {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}
