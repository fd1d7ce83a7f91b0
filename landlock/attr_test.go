package landlock

import (
	"encoding/binary"
	"errors"
	"testing"
)

func TestAttrIsAsLongAsTheKernelNeedsItToBe(t *testing.T) {
	for _, tt := range []struct {
		abi, size int
	}{{1, 8}, {2, 8}, {3, 8}, {4, 16}, {5, 16}, {6, 24}, {7, 24}, {8, 24}, {9, 24}, {10, 24}, {11, 24}} {
		d, _, err := Downgrade(Ruleset{}, tt.abi)
		if err != nil {
			t.Fatal(err)
		}
		b := d.Attr()
		if len(b) != tt.size {
			t.Errorf("ABI %d: %d bytes, want %d", tt.abi, len(b), tt.size)
		}
		fs, net, scope, _ := Supported(tt.abi)
		for i, want := range []uint64{uint64(fs), uint64(net), uint64(scope)}[:tt.size/8] {
			if got := binary.NativeEndian.Uint64(b[8*i:]); got != want {
				t.Errorf("ABI %d: word %d is %#x, want %#x", tt.abi, i, got, want)
			}
		}
	}
	if b := (Ruleset{UnhandledFS: FSAll, UnhandledNet: NetAll}).Attr(); len(b) != 24 || binary.NativeEndian.Uint64(b[16:]) != 3 {
		t.Errorf("scopes alone: %v", b)
	}
}

func TestRuleAttrs(t *testing.T) {
	p := PathBeneathAttr(FSTruncate, 7)
	if binary.NativeEndian.Uint64(p[:]) != 1<<14 || binary.NativeEndian.Uint32(p[8:]) != 7 {
		t.Errorf("path beneath %v", p)
	}
	n := NetPortAttr(NetConnectTCP, 443)
	if binary.NativeEndian.Uint64(n[:]) != 2 || binary.NativeEndian.Uint64(n[8:]) != 443 {
		t.Errorf("net port %v", n)
	}
}

func TestBuildIsStrict(t *testing.T) {
	var un *UnsupportedError
	if err := (Ruleset{}).HeldBy(9); !errors.As(err, &un) || len(un.Lost) != 2 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a ruleset with UDP on ABI 9: %v", err)
	}
	if err := (Ruleset{}).HeldBy(LatestABI); err != nil {
		t.Error(err)
	}
}

func TestFlagsAreNeverDropped(t *testing.T) {
	for _, tt := range []struct {
		flags Flags
		abi   int
		ok    bool
	}{{0, 1, true}, {LogNewExecOn, 6, false}, {LogNewExecOn, 7, true}, {TSync, 7, false}, {TSync, 8, true}, {NoNewPrivs, 11, true}, {1 << 20, 99, false}} {
		if err := flagsAt(tt.flags, tt.abi); (err == nil) != tt.ok {
			t.Errorf("%v on ABI %d: %v", tt.flags, tt.abi, err)
		}
	}
}

func TestErrataPrint(t *testing.T) {
	if got := (FixedTCPIdentification | FixedDisconnectedDirectories).String(); got != "fixed errata 1, 3" {
		t.Error(got)
	}
	if got := Errata(0).String(); got != "no errata fixed" {
		t.Error(got)
	}
}
