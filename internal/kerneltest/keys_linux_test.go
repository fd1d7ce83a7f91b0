package kerneltest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestKeysOfAUserAreCounted(t *testing.T) {
	before := keysOf(os.Getuid())
	if before <= 0 || before >= 1 {
		t.Skipf("needs a user with keys: %v", before) // this process's keyrings are some, where the kernel has any
	}
	for i := range 20 {
		id, err := unix.AddKey("user", fmt.Sprint("kerneltest ", os.Getpid(), i), []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		if err != nil {
			t.Skipf("needs keys: %v", err)
		}
		defer unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
	}
	if after := keysOf(os.Getuid()); after <= before {
		t.Errorf("%v of them, and with 20 more %v", before, after)
	}
}
