package inside

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAFileThatWasWrittenIsOpenToNothingElse, so that it can be executed at once: a lease for reading is refused (EAGAIN, fcntl(2)) for as long as
// a descriptor writes.
func TestAFileThatWasWrittenIsOpenToNothingElse(t *testing.T) {
	files := served(t, serve)
	name := filepath.Join(t.TempDir(), "program")
	lease := func(write func(name string, data []byte, perm fs.FileMode) error) error {
		if err := write(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	}
	if err := lease(os.WriteFile); err != nil {
		t.Skipf("needs a file system with leases: %v", err)
	}
	for i := range 300 {
		if err := lease(files.WriteFile); err != nil {
			t.Fatalf("after %d times: %v", i, err)
		}
	}
}
