package policy

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// TestNestedGoesWithWhatNeedsNoSupervisor: what can be said without looking at the host.
func TestNestedGoesWithWhatNeedsNoSupervisor(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
		field  string // "": it is taken
	}{
		{"nothing", Policy{}, ""},
		{"a copy", Policy{Files: Files{CopyOnWrite: []string{"/w"}}}, ""},
		{"a writable tree with protected names", Policy{Files: Files{Write: []string{"/w"}}}, "Nested"},
		{"a kept home with protected names", Policy{Files: Files{Home: "/w"}}, "Nested"},
		{"a writable tree without", Policy{Files: Files{Write: []string{"/w"}, Protect: Protect{Off: true}}}, ""},
		{"a device", Policy{Files: Files{Write: []string{"/dev/kvm"}}}, ""},
		{"a device and a tree", Policy{Files: Files{Write: []string{"/dev/kvm", "/w"}}}, "Nested"},
		{"hidden names", Policy{Files: Files{HideNames: []string{".env"}}}, "Nested"},
		{"Watch", Policy{Files: Files{Watch: true}}, "Nested"},
		{"a root", Policy{Root: &rootfs.Layout{}}, "Nested"},
		{"an open network", Policy{Open: []Bound{BoundNetwork, BoundTime}}, ""},
		{"open files", Policy{Open: []Bound{BoundTime, BoundFiles}}, "Open[1]"},
		{"open processes", Policy{Open: []Bound{BoundProcesses}}, "Open[0]"},
		{"open privileges", Policy{Open: []Bound{BoundPrivileges}}, "Open[0]"},
		{"open system calls", Policy{Open: []Bound{BoundSyscalls}}, "Open[0]"},
	}
	for _, test := range tests {
		test.policy.Nested = true
		err := test.policy.Validate()
		var e *PolicyError
		if test.field == "" && err != nil || test.field != "" && (!errors.As(err, &e) || e.Field != test.field || e.Remedy == "") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
