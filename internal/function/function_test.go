package function

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestACallIsReadAsItWasWritten(t *testing.T) {
	for _, want := range [][]string{{"name"}, {"name", ""}, {"name", "a", "\x00\n", strings.Repeat("x", 1<<20)}} {
		name, args, err := decodeCall(encodeCall(want[0], want[1:]))
		if err != nil || !reflect.DeepEqual(append([]string{name}, args...), want) {
			t.Errorf("%.60q: %.60q %.60q %v", want, name, args, err)
		}
	}
	whole := encodeCall("name", []string{"argument"})
	for n := range len(whole) {
		if name, args, err := decodeCall(whole[:n]); err == nil && (name != "name" || len(args) > 0) {
			t.Errorf("%d bytes of it: %q %q", n, name, args)
		}
	}
}

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	ended := errors.New("exit status 1")
	for _, test := range []struct {
		name    string
		written []byte
		ended   error
		want    *policy.FuncError
	}{
		{"nothing", make([]byte, resultSize), nil, &policy.FuncError{Function: "f", Message: "the process ended before the function returned"}},
		{"success", encodeResult(resultOK, "", ""), nil, nil},
		{"success, and then a signal", encodeResult(resultOK, "", ""), ended, &policy.FuncError{Function: "f", Message: "the process ended badly after the function had returned", Err: ended}},
		{"an error", encodeResult(resultError, "text", ""), ended, &policy.FuncError{Function: "f", Message: "text", Err: ended}},
		{"a panic with long texts", encodeResult(resultPanic, strings.Repeat("m", resultSize), strings.Repeat("s", resultSize)), ended,
			&policy.FuncError{Function: "f", Message: strings.Repeat("m", maxMessage), Panicked: true, Stack: strings.Repeat("s", maxStack), Err: ended}},
		{"a kind that is none", []byte{9, 0, 0, 0, 0, 0, 0, 0, 0}, nil, &policy.FuncError{Function: "f", Message: "the process has written a result that is none"}},
		{"lengths that are too large", []byte{resultOK, 255, 255, 255, 255, 0, 0, 0, 0}, nil, &policy.FuncError{Function: "f", Message: "the process has written a result that is none"}},
	} {
		err := decodeResult("f", test.written, test.ended)
		var got *policy.FuncError
		if errors.As(err, &got); !reflect.DeepEqual(got, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %#v", test.name, err)
		}
	}
}

func FuzzResult(f *testing.F) {
	f.Add(encodeResult(resultPanic, "message", "stack"))
	f.Add([]byte{resultError, 1, 0, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		err := decodeResult("f", b, nil)
		if err == nil && b[0] != resultOK {
			t.Errorf("%q is success", b)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n\x00") {
			t.Errorf("%q", err)
		}
		decodeCall(b)
	})
}

func TestInitialisationsAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{
		"example.com/a.b/pkg.init": true, "main.init": true, "example.com/pkg.init.0": true, "pkg.init.12": true,
		"example.com/pkg.init.0.func1": false, "example.com/pkg.init.func1": false, "pkg.T.init": false, "pkg.(*T).init": false, "pkg.initial": false, "pkg.init.": false, "init": false,
	} {
		if isInit(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
