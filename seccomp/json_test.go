package seccomp

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFilterIsTheSameAfterWritingAndReadingJSON(t *testing.T) {
	for name, f := range map[string]Filter{
		"default": Default(), "strict": Strict(), "off": Off(), "zero": {},
		"wide": {Rules: []Rule{{Names: []string{"read"}, Action: Trap, Args: []Arg{{Index: 5, Width: 64, Op: MaskedEqual, Mask: 1<<64 - 1, Value: 1<<64 - 2}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			var back Filter
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f, back); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAFilterInJSONReadsAsAPersonWouldWriteIt(t *testing.T) {
	const text = `{"default": "errno(EPERM)", "unknown": "errno(38)", "rules": [
		{"names": ["ioctl"], "action": "errno(13)", "args": [{"index": 1, "value": 21522}, {"index": 0, "width": 64, "op": ">=", "value": 18446744073709551615}], "reason": "why"},
		{"names": ["ioctl", "read"], "action": "allow"}]}`
	want := Filter{Default: Errno(EPERM), Unknown: Errno(ENOSYS), Rules: []Rule{
		{Names: []string{"ioctl"}, Action: Errno(EACCES), Reason: "why",
			Args: []Arg{{Index: 1, Value: 0x5412}, {Width: 64, Op: GreaterOrEqual, Value: 1<<64 - 1}}},
		{Names: []string{"ioctl", "read"}, Action: Allow},
	}}
	var got Filter
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJSONThatIsNoFilterIsRefusedAndLeavesTheFilterAlone(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown name":               `{"defaults": "allow"}`,
		"a name in another case":        `{"Default": "allow"}`,
		"a name of another level":       `{"rules": [{"names": ["read"], "default": "allow"}]}`,
		"a name twice":                  `{"default": "allow", "default": "log"}`,
		"a name twice in a rule":        `{"rules": [{"names": ["read"], "action": "allow", "action": "log"}]}`,
		"an unknown name in a check":    `{"rules": [{"names": ["read"], "args": [{"idx": 1}]}]}`,
		"null":                          `null`,
		"a null field":                  `{"rules": null}`,
		"an array":                      `[]`,
		"a string":                      `"allow"`,
		"an unknown action":             `{"default": "permit"}`,
		"an unknown operator":           `{"rules": [{"names": ["read"], "args": [{"index": 0, "op": "=", "value": 1}]}]}`,
		"an operator as a number":       `{"rules": [{"names": ["read"], "args": [{"index": 0, "op": 1, "value": 1}]}]}`,
		"an unknown syscall":            `{"rules": [{"names": ["raed"]}]}`,
		"an index out of range":         `{"rules": [{"names": ["read"], "args": [{"index": 6, "value": 1}]}]}`,
		"a negative value":              `{"rules": [{"names": ["read"], "args": [{"index": 0, "value": -1}]}]}`,
		"a value of more than 64 bits":  `{"rules": [{"names": ["read"], "args": [{"index": 0, "width": 64, "value": 18446744073709551616}]}]}`,
		"a fraction":                    `{"rules": [{"names": ["read"], "args": [{"index": 0, "value": 1.5}]}]}`,
		"a name that is a number":       `{"rules": [{"names": [1]}]}`,
		"names that are one string":     `{"rules": [{"names": "read"}]}`,
		"an object where an array goes": `{"rules": {"names": ["read"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := Off()
			err := json.Unmarshal([]byte(text), &f)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%v is no *Error", err)
			}
			if d := cmp.Diff(Off(), f); d != "" {
				t.Error(d)
			}
		})
	}
}
