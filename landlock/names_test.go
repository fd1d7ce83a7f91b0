package landlock

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestRightsPrintAndParseByName(t *testing.T) {
	for _, f := range Table() {
		name := f.Name()
		fs, errFS := ParseAccessFS(name)
		net, errNet := ParseAccessNet(name)
		scope, errScope := ParseScope(name)
		switch {
		case f.FS != 0 && (fs != f.FS || errFS != nil):
			t.Errorf("%s parsed to %v, %v", name, fs, errFS)
		case f.Net != 0 && (net != f.Net || errNet != nil):
			t.Errorf("%s parsed to %v, %v", name, net, errNet)
		case f.Scope != 0 && (scope != f.Scope || errScope != nil):
			t.Errorf("%s parsed to %v, %v", name, scope, errScope)
		}
	}
	for _, set := range []AccessFS{0, FSRead, FSReadWrite | FSRefer, FSAll} {
		if got, err := ParseAccessFS(set.String()); got != set || err != nil {
			t.Errorf("%q parsed to %v, %v", set, got, err)
		}
	}
}

func TestParseAccessFS(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       AccessFS
		bad        string
	}{
		{name: "a group and a right", text: "read | refer", want: FSRead | FSRefer},
		{name: "every right", text: "all", want: FSAll},
		{name: "no right", text: "none"},
		{name: "a right twice", text: "execute|execute", want: FSExecute},
		{name: "empty text is no right's name", text: "", bad: ""},
		{name: "a number is refused", text: "0x20000", bad: "0x20000"},
		{name: "a network right is no file system right", text: "bind_tcp", bad: "bind_tcp"},
		{name: "upper case is refused", text: "READ", bad: "READ"},
		{name: "a trailing bar is refused", text: "read|", bad: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseAccessFS(tt.text)
			var bad *NameError
			if tt.want == 0 && tt.text != "none" {
				if !errors.As(err, &bad) || bad.Name != tt.bad {
					t.Fatalf("error %v, want a NameError of %q", err, tt.bad)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestUnknownBitsPrintButDoNotMarshal(t *testing.T) {
	set := FSExecute | 1<<40
	if got := set.String(); got != "execute|0x10000000000" {
		t.Errorf("String() = %q", got)
	}
	var bad *NameError
	if _, err := json.Marshal(set); !errors.As(err, &bad) {
		t.Errorf("Marshal: %v, want a NameError", err)
	}
}

func TestForFileLeavesWhatTheKernelAcceptsOnAFile(t *testing.T) {
	if got, want := FSAll.ForFile(), FSExecute|FSWriteFile|FSReadFile|FSTruncate|FSIoctlDev|FSResolveUnix; got != want {
		t.Errorf("FSAll.ForFile() = %v, want %v", got, want)
	}
	if got := (FSReadDir | FSMakeReg | FSRefer).ForFile(); got != 0 {
		t.Errorf("rights of directories alone leave %v", got)
	}
}

func TestGroupsHoldNothingThatMustBeWrittenOut(t *testing.T) {
	for name, group := range map[string]AccessFS{"FSRead": FSRead, "FSReadExecute": FSReadExecute, "FSWrite": FSWrite, "FSReadWrite": FSReadWrite} {
		if extra := group & (FSRefer | FSIoctlDev | FSResolveUnix | FSMakeDevice); extra != 0 {
			t.Errorf("%s holds %v", name, extra)
		}
	}
	if rest := FSAll &^ (FSReadWrite | FSRefer | FSIoctlDev | FSResolveUnix | FSMakeDevice); rest != 0 {
		t.Errorf("no group holds %v", rest)
	}
}
