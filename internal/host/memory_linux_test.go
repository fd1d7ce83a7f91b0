package host

import "testing"

// TestYamaDecidesWhetherASupervisorReads: its settings are those of Documentation/admin-guide/LSM/Yama.rst.
func TestYamaDecidesWhetherASupervisorReads(t *testing.T) {
	works := Fact{Name: memoryName, Answer: Yes, Reason: "process_vm_readv(2) works"}
	for _, c := range []struct {
		name, scope          string
		privileged           bool
		answer, inANamespace Answer
	}{
		{"there is no Yama", "", false, Yes, Yes},
		{"classic", "0", false, Yes, Yes},
		{"ancestors may", "1", false, Yes, Yes},
		{"a capability is needed", "2", false, No, Yes},
		{"a capability is needed, and there", "2", true, Yes, Yes},
		{"nothing may", "3", true, No, No},
	} {
		f := works.underYama(c.scope, c.privileged)
		if f.Answer != c.answer || (f.Remedy != "") != (c.answer == No) {
			t.Errorf("%s: %+v", c.name, f)
		}
		if f = f.inNamespace(); f.Answer != c.inANamespace || f.Name == "" || f.Reason == "" {
			t.Errorf("%s, in a user namespace: %+v", c.name, f)
		}
	}
	unread := works.underYama("3", true)
	for name, trial := range map[string]Trial{"with namespaces": {}, "without": {Refused: "clone a process: EPERM"}} {
		f := Facts{Kernel: "6.18.0", UserNS: true, Notify: Fact{Name: "n", Answer: Yes}, Memory: unread}.Tried(trial)
		if f.Notify.Answer != No || f.Notify.Remedy == "" || f.Notify.Name != "n" {
			t.Errorf("%s: a supervisor that reads nothing serves nothing: %+v", name, f.Notify)
		}
	}
}
