package seccomp

import "fmt"

// Arch is a Linux architecture as the kernel tells it to a filter: an AUDIT_ARCH_ value
// (linux/audit.h). A filter is compiled for AMD64 or ARM64; any other value can stand in a
// Call, to see that the program refuses it. The zero Arch is none.
type Arch uint32

// AMD64 and ARM64 are the architectures that filters are compiled for.
const (
	AMD64 Arch = 0xC000003E // AUDIT_ARCH_X86_64
	ARM64 Arch = 0xC00000B7 // AUDIT_ARCH_AARCH64
)

// String returns "amd64", "arm64" or the value in hexadecimal.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return fmt.Sprintf("Arch(%#x)", uint32(a))
}

// known says whether filters can be compiled for a.
func (a Arch) known() bool { return a == AMD64 || a == ARM64 }

// Native returns the architecture that this program was built for. It fails with an error that
// wraps errors.ErrUnsupported on any other than amd64 and arm64; the operating system plays no
// part.
func Native() (Arch, error) {
	if native == 0 {
		return 0, &Error{Field: "Arch", Err: errUnsupportedArch}
	}
	return native, nil
}
