package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestASecretsLengthIsBounded(t *testing.T) {
	for length, want := range map[int]bool{7: false, 8: true, 4096: true, 4097: false} {
		n := Network{Hosts: []string{"a.example"}, Credentials: []policy.Credential{{Name: "A", Secret: strings.Repeat("s", length), Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}}
		if err := (Policy{Network: n}).Validate(); (err == nil) != want {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestExplainNamesTheDatagrams(t *testing.T) {
	n := Network{Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }, UDP: []string{"a.example:123"}}
	if text := explainNetwork(n, compile.NewNetConfig(n)); !strings.Contains(text, "carry datagrams to a.example:123") {
		t.Errorf("the plan is explained without them: %s", text)
	}
}
