package landlock

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestTheZeroRulesetHandlesEverythingAndGrantsNothing(t *testing.T) {
	var r Ruleset
	if r.HandledFS() != FSAll || r.HandledNet() != NetAll || r.Scoped() != ScopeAll {
		t.Errorf("handles %v, %v, %v", r.HandledFS(), r.HandledNet(), r.Scoped())
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	if parsed, err := ParseRuleset([]byte("{}")); err != nil || !reflect.DeepEqual(parsed, r) {
		t.Errorf("{} parses to %+v, %v", parsed, err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	path := func(p string) Ruleset { return Ruleset{Paths: []PathRule{{"/ok", FSRead}, {p, FSRead}}} }
	for _, tt := range []struct {
		name, field string
		r           Ruleset
	}{
		{"an empty path", "Paths[1].Path", path("")},
		{"a relative path", "Paths[1].Path", path("usr")},
		{"a path with a NUL byte", "Paths[1].Path", path("/usr\x00/bin")},
		{"a path rule without rights", "Paths[0].Access", Ruleset{Paths: []PathRule{{Path: "/"}}}},
		{"a path rule with unknown bits", "Paths[0].Access", Ruleset{Paths: []PathRule{{"/", 1 << 50}}}},
		{"a port rule without rights", "Ports[0].Access", Ruleset{Ports: []PortRule{{Port: 1}}}},
		{"a port rule with unknown bits", "Ports[0].Access", Ruleset{Ports: []PortRule{{1, 1 << 50}}}},
		{"unknown bits left unhandled", "UnhandledFS", Ruleset{UnhandledFS: 1 << 50}},
		{"unknown network bits left unhandled", "UnhandledNet", Ruleset{UnhandledNet: 1 << 50}},
		{"unknown scopes left open", "Unscoped", Ruleset{Unscoped: 1 << 50}},
		{"a ruleset that restricts nothing", "UnhandledFS, UnhandledNet, Unscoped", Ruleset{UnhandledFS: FSAll, UnhandledNet: NetAll, Unscoped: ScopeAll}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bad *FieldError
			if err := tt.r.Validate(); !errors.As(err, &bad) || bad.Field != tt.field {
				t.Errorf("error %v, want one of field %s", err, tt.field)
			}
			if _, _, err := Downgrade(tt.r, LatestABI); !errors.As(err, &bad) {
				t.Errorf("Downgrade: %v", err)
			}
		})
	}
}

func TestARulesetSurvivesJSON(t *testing.T) {
	r := Ruleset{
		UnhandledFS: FSIoctlDev, UnhandledNet: NetBindUDP, Unscoped: ScopeSignal,
		Paths: []PathRule{{"/usr", FSReadExecute}, {"/tmp", FSReadWrite | FSRefer}},
		Ports: []PortRule{{443, NetConnectTCP}},
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `{"path":"/usr","access":"execute|read_file|read_dir"}`) {
		t.Errorf("rights are not written by name: %s", data)
	}
	if back, err := ParseRuleset(data); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

func TestParseRulesetRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown field":         `{"handled_fs": "all"}`,
		"an unknown right":         `{"paths": [{"path": "/", "access": "reed"}]}`,
		"a right as a number":      `{"unhandled_fs": 3}`,
		"a port out of range":      `{"ports": [{"port": 70000, "access": "bind_tcp"}]}`,
		"text after the end":       `{} {}`,
		"a field error":            `{"paths": [{"path": "usr", "access": "read"}]}`,
		"nothing":                  ``,
		"a ruleset that is a list": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := ParseRuleset([]byte(text)); err == nil {
				t.Errorf("%s parsed to %+v", text, r)
			}
		})
	}
}

func FuzzParseRuleset(f *testing.F) {
	f.Add([]byte(`{"paths":[{"path":"/usr","access":"read|execute"}],"ports":[{"port":443,"access":"connect_tcp"}]}`))
	f.Add([]byte(`{"unhandled_fs":"all","unhandled_net":"all","unscoped":"signal"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRuleset(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseRuleset(again)
		if err != nil || !reflect.DeepEqual(back.normal(), r.normal()) {
			t.Fatalf("%s came back as %+v, %v", again, back, err)
		}
		for abi := range LatestABI + 2 {
			checkDowngrade(t, r, abi)
		}
	})
}

// normal makes empty lists nil, since JSON leaves them out.
func (r Ruleset) normal() Ruleset {
	r.Paths, r.Ports = append([]PathRule(nil), r.Paths...), append([]PortRule(nil), r.Ports...)
	return r
}

func FuzzParseAccessFS(f *testing.F) {
	f.Add("read|execute")
	f.Add("none|all")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseAccessFS(text)
		if err != nil {
			return
		}
		if back, err := ParseAccessFS(set.String()); back != set || err != nil {
			t.Errorf("%q is %v and came back as %v, %v", text, set, back, err)
		}
	})
}
