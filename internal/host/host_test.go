package host

import (
	"encoding/json"
	"testing"
)

func TestTheZeroFactIsNotYes(t *testing.T) {
	if (Fact{}).Yes() || (Fact{Answer: No}).Yes() || !(Fact{Answer: Yes}).Yes() {
		t.Error("only yes is yes")
	}
	for a, want := range map[Answer]string{Unknown: "could not tell", Yes: "yes", No: "no"} {
		if a.String() != want {
			t.Errorf("%d: %q", a, a)
		}
	}
}

func TestFactsInJSONAreReadable(t *testing.T) {
	text, err := json.Marshal(Fact{Name: "Landlock", Answer: Yes, Value: 7})
	if err != nil || string(text) != `{"name":"Landlock","answer":"yes","value":7}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestKernelAtLeast(t *testing.T) {
	tests := []struct {
		name         string
		kernel       string
		major, minor int
		want         bool
	}{
		{"the same", "6.14.0", 6, 14, true},
		{"a later minor", "6.15-rc1", 6, 14, true},
		{"an earlier minor", "6.9.3-amd64", 6, 14, false},
		{"a later major", "7.0", 6, 14, true},
		{"an earlier major", "5.19.0", 6, 14, false},
		{"no number", "unknown", 1, 0, false},
		{"nothing", "", 0, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := (Facts{Kernel: test.kernel}).KernelAtLeast(test.major, test.minor); got != test.want {
				t.Error(got)
			}
		})
	}
}

// TestReadGivesEveryFactItsName on whatever system this is; what it says of a
// host without a feature is tested where namespaces are tried out too.
func TestReadGivesEveryFactItsName(t *testing.T) {
	f := Read()
	for _, fact := range f.List() {
		if fact.Name == "" {
			t.Errorf("%+v", fact)
		}
	}
}
