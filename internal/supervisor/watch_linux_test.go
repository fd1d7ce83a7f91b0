package supervisor

import (
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// TestOnlyWatchedCallsGoOn: what the serving code lets go on unseen under Watch, the filter without Watch lets go on, too, for
// every number, all flags of open, and rules of every kind; and Watch takes no stop away.
func TestOnlyWatchedCallsGoOn(t *testing.T) {
	name := []protected.Pattern{{Path: ".bashrc"}}
	for words, r := range map[string]Rules{
		"nothing":       {},
		"roots":         {Roots: []Root{{Path: "/w"}}},
		"names":         {Roots: []Root{{Path: "/w"}}, Names: name},
		"a hidden name": {Roots: []Root{{Path: "/w"}}, Names: name, Hidden: []string{".env"}},
		"a hidden path": {Roots: []Root{{Path: "/w"}}, Paths: []protected.Pattern{{Path: "/w/x", Kind: protected.Unread}}},
		"a path":        {Roots: []Root{{Path: "/w"}}, Paths: []protected.Pattern{{Path: "/w/x"}}},
		"connections":   {Connects: []Endpoint{{[4]byte{127, 0, 0, 1}, 80}}},
		"the fence":     {Roots: []Root{{Path: "/w"}}, Names: name, Fence: true},
	} {
		t.Run(words, func(t *testing.T) {
			plain, err := FilterOf(runtime.GOARCH, &r)
			if err != nil {
				t.Fatal(err)
			}
			r.Watch = true
			watching, err := FilterOf(runtime.GOARCH, &r)
			if err != nil {
				t.Fatal(err)
			}
			blob, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			s := new(State)
			Begin(s, blob, nil)
			audit, goesOn := tables[runtime.GOARCH].audit, 0
			for nr := range uint32(500) {
				for _, flags := range []uint64{0, 1, 2, 3, 0x40, 0x200, 0x240, openPath, openPath | 1, 0x410000, statEmptyPath, 1 << 40, math.MaxUint64} {
					args := [6]uint64{flags, flags, flags, flags, flags, flags}
					s.req.nr, s.req.args = int32(nr), args
					was, is := evaluate(t, plain, audit, nr, args[:]...), evaluate(t, watching, audit, nr, args[:]...)
					switch {
					case is != retNotify && is != was:
						t.Errorf("call %d, %#x: %#x without Watch, %#x with", nr, flags, was, is)
					case is == retNotify && s.onlyWatched():
						if goesOn++; was != retAllow {
							t.Errorf("call %d, %#x goes on unseen", nr, flags)
						}
					case is == retNotify && was != retNotify:
						t.Errorf("call %d, %#x is served because of Watch", nr, flags)
					}
				}
			}
			if goesOn == 0 {
				t.Error("nothing is watched")
			}
			mark := [6]uint64{0, 0, 0, 0, 0, ExecMark}
			for _, nr := range tables[runtime.GOARCH].executes {
				if got := evaluate(t, watching, audit, nr, mark[:]...); got != retAllow {
					t.Errorf("the tool's own execution: %#x", got)
				}
			}
		})
	}
}

// TestWatchReader: records come in order, once, also over the ring's end; what is torn waits, and a broken ring gives nothing.
func TestWatchReader(t *testing.T) {
	memory := make([]byte, DenialBytes+WatchBytes)
	table := watchIn(memory)
	w := WatchReader{
		Read:  func(b []byte, at int64) bool { return copy(b, memory[at:]) == len(b) },
		Write: func(b []byte, at int64) bool { return copy(memory[at:], b) == len(b) },
	}
	put := func() {
		r := &table.record[table.head%WatchRoom]
		r.denial = denialRecord{deed: uint8(DeedLook), reason: uint8(ReasonAbsent), count: 1, size: [2]uint16{2}}
		r.denial.path[0][0], r.denial.path[0][1] = '/', byte('a'+table.head%26)
		r.number, r.hash = table.head, r.denial.sum()
		table.head++
	}
	all := func() (text string) {
		w.All(func(d Denial) { text += d.Paths[0] })
		return text
	}
	put()
	put()
	if got := all(); got != "/a/b" || table.tail != 2 || all() != "" {
		t.Errorf("%q, tail %d", got, table.tail)
	}
	put()
	put()
	table.record[3].hash++
	if got := all(); got != "/c" || table.tail != 3 {
		t.Errorf("with a torn record: %q", got)
	}
	table.record[3].hash--
	if got := all(); got != "/d" {
		t.Errorf("when it is whole: %q", got)
	}
	for range 2 * WatchRoom {
		put()
		if got := all(); len(got) != 2 {
			t.Fatalf("%q at %d", got, table.head)
		}
	}
	table.head, table.beyond = w.next+WatchRoom+1, 7
	if beyond := w.All(func(Denial) { t.Error("a record of a broken ring") }); beyond != 7 {
		t.Errorf("%d are lost", beyond)
	}
}

// watchIn is the ring in the memory that init shares.
func watchIn(memory []byte) *watchTable {
	return (*watchTable)(unsafe.Pointer(&memory[DenialBytes]))
}
