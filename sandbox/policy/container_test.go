package policy

import (
	"slices"
	"testing"
)

func TestInContainerAcceptsFilesAndProcesses(t *testing.T) {
	given := make([]Bound, 1, 8)
	given[0] = BoundTime
	for _, test := range []struct {
		name   string
		policy Policy
		want   []Bound
	}{
		{"nothing accepted before", Policy{}, []Bound{BoundFiles, BoundProcesses}},
		{"one of the two", Policy{May: []Bound{BoundProcesses}}, []Bound{BoundProcesses, BoundFiles}},
		{"another", Policy{May: given}, []Bound{BoundTime, BoundFiles, BoundProcesses}},
		{"an open one stays open", Policy{Open: []Bound{BoundFiles}}, []Bound{BoundProcesses}},
		{"twice", Policy{}.InContainer(), []Bound{BoundFiles, BoundProcesses}},
	} {
		got := test.policy.InContainer()
		if !slices.Equal(got.May, test.want) {
			t.Errorf("%s: %q", test.name, got.May)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if !slices.Equal(given[:2], []Bound{BoundTime, ""}) {
		t.Errorf("the caller's list was written to: %q", given[:2])
	}
}
