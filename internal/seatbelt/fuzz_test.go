package seatbelt

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// tight are limits that let a fuzzer go fast.
var tight = Limits{Bytes: 64 << 10, Depth: 64, Steps: 200_000, Rules: 2000, String: 16 << 10, Regexp: 2000, Regexps: 20_000, Imports: 16}

func seeds(f *testing.F) []string {
	f.Helper()
	files, err := filepath.Glob("testdata/profiles/*.sb")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	var all []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, string(text))
	}
	for _, h := range hostile {
		if len(h.text) < 4096 {
			all = append(all, "(version 1)"+h.text)
		}
	}
	return append(all, `"\x41\102\"" #"raw" #\a #\( '(a . b) #| #| |# |# #xff [a]`, `(allow (with message "x") network* (remote tcp "*:1"))`)
}

// The reader ends, does not panic, and its errors have a place in the text.
func FuzzReader(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &machine{limits: tight.orDefaults()}
		r := &reader{m: m, src: "fuzz", text: text, line: 1}
		_, err := r.forms()
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Line < 1 || e.Line > 1+strings.Count(text, "\n") || e.Column < 1 || e.Column > len(text)+1 {
			t.Errorf("%#v", err)
		}
	})
}

// A profile is refused with an *Error, or it is one that says of itself what it
// is: printed and read again, it has the same rules.
func FuzzParse(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, "/Users/me", true)
	}
	f.Fuzz(func(t *testing.T, text, param string, newer bool) {
		o := Options{Limits: tight, NewerOperations: newer, Params: map[string]string{
			"HOME": param, "WORKSPACE": param, "OS_VERSION": "1015", "LEVEL": "3", "STORAGE_COUNT": "2",
		}}
		p, err := Parse(Source{Name: "fuzz", Text: text}, o)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || p != nil || e.Message == "" {
				t.Errorf("%#v, %v", err, p)
			}
			return
		}
		printed := p.String()
		again, err := Parse(Source{Name: "again", Text: printed}, Options{NewerOperations: newer, Fragment: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if again.String() != printed {
			t.Errorf("printed:\n%s\nprinted again:\n%s", printed, again)
		}
	})
}

// A verdict is the same however often it is asked for, is the one that every rule asked in
// turn leads to, and is that of the printed profile.
func FuzzEvaluate(f *testing.F) {
	for i, s := range seeds(f) {
		f.Add(s, uint8(i*7), "/Users/me/src/app/.git/hooks", "com.apple.logd", "localhost:80", "tcp")
	}
	f.Fuzz(func(t *testing.T, text string, op uint8, path, name, address, proto string) {
		p, err := Parse(Source{Name: "fuzz", Text: text}, Options{Limits: tight, Params: map[string]string{"HOME": "/Users/me", "WORKSPACE": "/Users/me/src/app"}})
		if err != nil {
			return
		}
		again, err := Parse(Source{Name: "fuzz", Text: p.String()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := Query{Operation: operations[int(op)%len(operations)].Name, Path: path, Name: name, Address: address, Protocol: proto, VnodeType: name, Target: name}
		v := p.Evaluate(q)
		if w := p.Evaluate(q); !reflect.DeepEqual(v, w) {
			t.Errorf("%+v, then %+v", v, w)
		}
		if w := again.Evaluate(q); w.Allow != v.Allow || w.Step != v.Step || w.Operation != v.Operation {
			t.Errorf("%+v, and printed %+v", v, w)
		}
		if allow, _ := bruteForce(p, q); allow != v.Allow {
			t.Errorf("%+v, and rule by rule %v", v, allow)
		}
		if v.Why == "" || v.Allow && v.Rule == nil || v.Rule != nil && v.Allow != (v.Rule.Action == Allow) {
			t.Errorf("%+v", v)
		}
	})
}
