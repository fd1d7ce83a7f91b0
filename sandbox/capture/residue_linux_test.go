package capture

import (
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// residue returns what fails the test if there come to be more goroutines or
// descriptors than there are now: those of the servers' and the clients' ends go by
// themselves, and are waited for.
func residue(t *testing.T) (gone func()) {
	count := func() (goroutines, descriptors int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(entries)
	}
	goroutines, descriptors := count()
	return func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			g, d := count()
			if g <= goroutines && d <= descriptors {
				return
			}
			if time.Now().After(deadline) {
				pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
				t.Fatalf("%d goroutines and %d descriptors, %d and %d before", g, d, goroutines, descriptors)
			}
		}
	}
}
