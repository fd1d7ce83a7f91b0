package child

import "unsafe"

//go:norace
//go:nocheckptr
func text(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }

// length returns the length of the null-terminated string at off.
//
//go:norace
//go:nocheckptr
func length(off uint32) uint32 {
	n := uint32(0)
	for *(*byte)(at(off + n)) != 0 {
		n++
	}
	return n
}

// decimal writes n to the end of digits and returns the index of its first digit.
//
//go:norace
//go:nocheckptr
func decimal(digits *[24]byte, n uintptr) uintptr {
	i := uintptr(len(digits))
	for {
		i--
		digits[i%uintptr(len(digits))] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return i % uintptr(len(digits))
		}
	}
}
