package policy

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// TestAMisspeltFieldInJSONIsAnError: encoding/json leaves it out, and what it would hide is shown.
func TestAMisspeltFieldInJSONIsAnError(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"Netwrok": {"Hosts": ["a.example"]}}`:           {"Netwrok", "is Network meant?"},
		`{"Files": {"HideName": [".env"]}}`:               {"HideName", "is HideNames meant?"},
		`{"Files": {"Protect": {"Adds": ["x"]}}}`:         {"Adds", "is Add meant?"},
		`{"Files": {"Make": [{"Pth": "/a"}]}}`:            {"Pth", "is Path meant?"},
		`{"Network": {"Credentials": [{"Secrett": ""}]}}`: {"Secrett", "is Secret meant?"},
		`{"Limits": {"zzzzzzzz": 1}}`:                     {"zzzzzzzz", "remove it"},
		`{"Observe": null}`:                               {"Observe", "remove it"},
	} {
		p := Policy{Dir: "/before"}
		err := json.Unmarshal([]byte(text), &p)
		saysWhatToDo(t, err, want[0])
		if e, ok := err.(*PolicyError); !ok || e.Remedy != want[1] {
			t.Errorf("%s: %v, want %q", text, err, want[1])
		}
		if !reflect.DeepEqual(p, Policy{Dir: "/before"}) {
			t.Errorf("%s: has changed the policy to %+v", text, p)
		}
	}
	var p Policy
	for _, text := range []string{`{"Limits": {"Rlimits": {"memory": "1GiB"}}}`, `{"Syscalls": {"defualt": "allow"}}`, `{"Dir": 1}`, `{"Dir": "/a"`, `[]`} {
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestAPolicyIsReadFromJSONAsItIsWritten, alone, and into one that has other fields.
func TestAPolicyIsReadFromJSONAsItIsWritten(t *testing.T) {
	p := Policy{Files: Files{Read: []string{"/usr"}, Make: []File{{Path: "/tmp/a", Data: "b"}}}, Limits: Limits{WallClock: time.Minute}, May: []Bound{BoundTime}, Dir: "/w"}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back, around = Policy{}, struct{ Policy Policy }{}
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"Policy": `+string(text)+`, "Other": 1}`), &around); err != nil || !reflect.DeepEqual(around.Policy, p) {
		t.Errorf("%+v, %v", around, err)
	}
	if err := json.Unmarshal([]byte(`{"files": {"HideNames": [".env"]}, "Network": null}`), &back); err != nil || back.Files.HideNames[0] != ".env" || back.Files.Read[0] != "/usr" || back.Dir != "/w" {
		t.Errorf("%+v, %v", back, err)
	}
}
