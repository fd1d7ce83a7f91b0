package runner

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestEveryRefusalIsInWords: each deed and each reason has a text, and a remedy that names a field or says that nothing does.
func TestEveryRefusalIsInWords(t *testing.T) {
	r := supervisor.Rules{Roots: []supervisor.Root{{Path: "/w"}}, Names: protected.Patterns()}
	rules, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	whys := map[string]supervisor.Reason{}
	for reason := supervisor.ReasonName; reason <= supervisor.ReasonTracer; reason++ {
		for deed := supervisor.DeedCall; deed <= supervisor.DeedAttribute; deed++ {
			d := supervisor.Denial{Deed: deed, Reason: reason, Paths: [2]string{"/w/x/.gitmodules", "/w/y"}, Count: 1 << 63, Command: "a\x00b"}
			v := JudgeDenial(d, rules, policy.Files{})
			if v.Operation == "" || v.Why == "" || !strings.HasPrefix(v.Remedy, nothing) && !strings.Contains(v.Remedy, "Files.") || v.Count <= 0 || v.Claimed != "a b" {
				t.Errorf("deed %d, reason %d: %+v", deed, reason, v)
			}
			if of, there := whys[v.Why]; there && of != reason && reason != supervisor.ReasonPrefix {
				t.Errorf("reasons %d and %d have the same words: %s", of, reason, v.Why)
			}
			whys[v.Why] = reason
		}
	}
}

func TestAddressText(t *testing.T) {
	for address, want := range map[string]string{
		"\x02\x00\x01\xbb\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00":                           "127.0.0.1:443",
		"\x0a\x00\x00\x50\x00\x00\x00\x00\x20\x01" + strings.Repeat("\x00", 13) + "\x01":             "[2001::1]:80",
		"\x0a\x00\x00\x50\x00\x00\x00\x00" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01": "[::ffff:127.0.0.1]:80",
		"\x01\x00/run/x.sock\x00\x00": "/run/x.sock",
		"\x01\x00\x00bus":             "@bus",
		"\x02\x00\x01":                "an address of family 2",
		"\x00\x00":                    "an address of family 0",
		"\x01":                        "no address",
		"":                            "no address",
	} {
		if got := addressText([]byte(address)); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
