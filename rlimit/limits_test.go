package rlimit

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
)

// ample is a process with wide limits: soft 1000, hard 100000 of everything.
func ample() Values {
	var v Values
	for r := range v {
		v[r] = Limit{1000, 100_000}
	}
	return v
}

func TestTheZeroLimitsChangeNothing(t *testing.T) {
	settings, err := Limits{}.Resolve(ample())
	if err != nil || len(settings) != 0 {
		t.Errorf("%v, %v", settings, err)
	}
}

func TestEveryResourceHasItsField(t *testing.T) {
	for r := range Resource(NumResources) {
		var l Limits
		*l.of(r) = At(7)
		settings, err := l.Resolve(ample())
		if err != nil || !reflect.DeepEqual(settings, []Setting{{r, 7, 7}}) {
			t.Errorf("%v: %v, %v", r, settings, err)
		}
		v := reflect.ValueOf(l).FieldByName(resources[r].field)
		if !v.IsValid() || v.IsNil() {
			t.Errorf("%v is not the field %s", r, resources[r].field)
		}
	}
	if n := reflect.TypeFor[Limits]().NumField(); n != NumResources {
		t.Errorf("%d fields, %d resources", n, NumResources)
	}
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name string
		l    Limits
		want []Setting
		bad  string // the field at fault
	}{
		{name: "zero can be asked for", l: Limits{Core: At(0)}, want: []Setting{{Core, 0, 0}}},
		{name: "the inherited hard limit itself", l: Limits{AS: At(100_000)}, want: []Setting{{AS, 100_000, 100_000}}},
		{name: "a soft limit may be raised up to the hard one", l: Limits{NoFile: Between(5000, Inherited)}, want: []Setting{{NoFile, 5000, 100_000}}},
		{name: "the soft side kept", l: Limits{NoFile: Between(Inherited, 5000)}, want: []Setting{{NoFile, 1000, 5000}}},
		{name: "both sides kept", l: Limits{CPU: At(Inherited)}, want: []Setting{{CPU, 1000, 100_000}}},
		{name: "in the kernel's order", l: Limits{AS: At(1), CPU: At(2)}, want: []Setting{{CPU, 2, 2}, {AS, 1, 1}}},
		{name: "a hard limit above the inherited one", l: Limits{AS: At(100_001)}, bad: "AS"},
		{name: "unlimited above an inherited number", l: Limits{FSize: At(Unlimited)}, bad: "FSize"},
		{name: "soft above hard", l: Limits{Stack: Between(2, 1)}, bad: "Stack"},
		{name: "the kept soft limit above the hard one", l: Limits{NProc: Between(Inherited, 10)}, bad: "NProc"},
		{name: "a soft limit above the kept hard one", l: Limits{NProc: Between(200_000, Inherited)}, bad: "NProc"},
		{name: "a nice that does not exist", l: Limits{Nice: At(41)}, bad: "Nice"},
		{name: "a real-time priority that does not exist", l: Limits{RTPrio: At(100)}, bad: "RTPrio"},
		{name: "descriptors without limit", l: Limits{NoFile: At(Unlimited)}, bad: "NoFile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.l.Resolve(ample())
			var bad *FieldError
			if tt.bad != "" {
				if !errors.As(err, &bad) || bad.Field != tt.bad || got != nil {
					t.Errorf("got %v, %v; want an error of field %s", got, err, tt.bad)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestUnlimitedStaysUnlimited(t *testing.T) {
	v := ample()
	v[AS] = Limit{Unlimited, Unlimited}
	if got, err := (Limits{AS: At(Unlimited)}).Resolve(v); err != nil || got[0].Hard != Unlimited {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDefaultsNeverAskForMoreThanIsInherited(t *testing.T) {
	for _, tt := range []struct {
		name           string
		nofile, nproc  uint64 // inherited hard limits
		running        uint64
		soft, hard, np uint64 // np 0: nil
	}{
		{"a roomy machine, in a user namespace", 1 << 20, 100_000, 0, 4096, 65536, 4096},
		{"a roomy machine, beside the user's other threads", 1 << 20, 100_000, 3000, 4096, 65536, 7096},
		{"a machine with few descriptors", 1024, 100_000, 0, 768, 768, 4096},
		{"a machine with fewer than the default", 20_000, 100_000, 0, 4096, 18_976, 4096},
		{"a machine with few processes", 1 << 20, 500, 0, 4096, 65536, 500},
		{"an unknown count", 1 << 20, 100_000, Unlimited, 4096, 65536, 0},
		{"no limits at all", Unlimited, Unlimited, 10, 4096, 65536, 4106},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := ample()
			v[NoFile].Hard, v[NProc].Hard = tt.nofile, tt.nproc
			want := Limits{Core: At(1), NoFile: Between(tt.soft, tt.hard), SigPending: At(75_000)}
			if tt.running == 0 {
				want.SigPending = At(4096)
			}
			if tt.np != 0 {
				want.NProc = At(tt.np)
			}
			got := Defaults(v, tt.running)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, want %s", text(t, got), text(t, want))
			}
			if _, err := got.Resolve(v); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDefaultsSetNoLimitOfZeroSignals: none is left to take away, and gVisor refuses to set that limit.
func TestDefaultsSetNoLimitOfZeroSignals(t *testing.T) {
	v := ample()
	v[SigPending] = Limit{0, 0}
	for _, running := range []uint64{0, 3000, Unlimited} {
		if got := Defaults(v, running); got.SigPending != nil {
			t.Errorf("%d threads: %s", running, text(t, got))
		}
	}
	v[SigPending] = Limit{1, 1}
	if got := Defaults(v, 0); got.SigPending == nil {
		t.Errorf("%s", text(t, got))
	}
}

func TestOrFillsAndSharesNothing(t *testing.T) {
	mine, theirs := Limits{Core: At(5)}, Limits{Core: At(0), CPU: At(9)}
	got := mine.Or(theirs)
	if got.Core.Soft != 5 || got.CPU.Soft != 9 || got.AS != nil {
		t.Errorf("%s", text(t, got))
	}
	got.Core.Soft, got.CPU.Soft = 1, 1
	if mine.Core.Soft != 5 || theirs.CPU.Soft != 9 {
		t.Error("a change of the result changed an argument")
	}
}

func text(t *testing.T, l Limits) string {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestParseAndFormat(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      Resource
		text   string
		want   Limit
		prints string // "": as text
	}{
		{"bytes with a unit", FSize, "512MiB", Limit{512 << 20, 512 << 20}, ""},
		{"bytes without a unit", FSize, "1000", Limit{1000, 1000}, "1000B"},
		{"bytes print in the largest unit that fits", AS, "1024KiB", Limit{1 << 20, 1 << 20}, "1MiB"},
		{"seconds", CPU, "90s", Limit{90, 90}, ""},
		{"minutes", CPU, "1m:65s", Limit{60, 65}, ""},
		{"microseconds", RTTime, "200ms", Limit{200_000, 200_000}, ""},
		{"a count", NoFile, "4096:65536", Limit{4096, 65536}, ""},
		{"zero without a unit", CPU, "0", Limit{}, ""},
		{"unlimited", Stack, "8MiB:unlimited", Limit{8 << 20, Unlimited}, ""},
		{"inherited", NoFile, "1024:inherited", Limit{1024, Inherited}, ""},
		{"the largest number", NProc, "18446744073709551613", Limit{math.MaxUint64 - 2, math.MaxUint64 - 2}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.r.Parse(tt.text)
			if err != nil || got != tt.want {
				t.Fatalf("%v, %v; want %v", got, err, tt.want)
			}
			if tt.prints == "" {
				tt.prints = tt.text
			}
			if s := tt.r.Format(got); s != tt.prints {
				t.Errorf("prints as %q, want %q", s, tt.prints)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Resource
		text string
	}{
		{"nothing", FSize, ""},
		{"a unit alone", FSize, "MiB"},
		{"a decimal unit, which some read as binary", FSize, "5MB"},
		{"a fraction", FSize, "1.5GiB"},
		{"a negative number", FSize, "-1"},
		{"a space", FSize, "5 MiB"},
		{"seconds without a unit", CPU, "10"},
		{"milliseconds of processor time", CPU, "10ms"},
		{"a unit on a count", NoFile, "10B"},
		{"too large", FSize, "16777216TiB"},
		{"unlimited as a number", FSize, "18446744073709551615"},
		{"inherited as a number", FSize, "18446744073709551614"},
		{"three sides", FSize, "1:2:3"},
		{"an empty side", FSize, "1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.r.Parse(tt.text)
			var bad *FieldError
			if !errors.As(err, &bad) || bad.Value != tt.text {
				t.Errorf("%q parsed to %v, %v", tt.text, got, err)
			}
		})
	}
}

func TestLimitsSurviveJSON(t *testing.T) {
	l := Limits{Core: At(0), CPU: Between(60, 65), NoFile: Between(1024, 4096), AS: At(512 << 20), Stack: Between(Inherited, Unlimited)}
	const want = `{"as":"512MiB","core":"0","cpu":"1m:65s","nofile":"1024:4096","stack":"inherited:unlimited"}`
	if got := text(t, l); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back Limits
	if err := json.Unmarshal([]byte(want), &back); err != nil || !reflect.DeepEqual(back, l) {
		t.Errorf("came back as %s, %v", text(t, back), err)
	}
}

func TestJSONRefusesAndLeavesWhatWasThere(t *testing.T) {
	for name, data := range map[string]string{
		"an unknown resource": `{"files": "5"}`,
		"a number":            `{"nofile": 5}`,
		"a bad unit":          `{"as": "5MB"}`,
		"soft above hard":     `{"as": "6:5"}`,
		"a list":              `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			l := Limits{CPU: At(5)}
			if err := json.Unmarshal([]byte(data), &l); err == nil {
				t.Errorf("parsed to %s", text(t, l))
			}
			if !reflect.DeepEqual(l, Limits{CPU: At(5)}) {
				t.Errorf("changed to %s", text(t, l))
			}
		})
	}
}

func FuzzLimitsJSON(f *testing.F) {
	f.Add([]byte(`{"as":"512MiB","core":"0","cpu":"1m:65s","nofile":"1024:inherited","stack":"8MiB:unlimited","rttime":"3ms"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l, back Limits
		if json.Unmarshal(data, &l) != nil {
			return
		}
		if err := json.Unmarshal([]byte(text(t, l)), &back); err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%s came back as %s, %v", text(t, l), text(t, back), err)
		}
		settings, err := l.Resolve(ample())
		for _, s := range settings {
			if err != nil || s.Soft > s.Hard || s.Hard > ample()[s.Resource].Hard {
				t.Fatalf("%v, %v", s, err)
			}
		}
	})
}
