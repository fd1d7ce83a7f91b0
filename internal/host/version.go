package host

import "fmt"

// KernelAtLeast reports whether the kernel's release is major.minor or newer. A
// release that cannot be read is not.
func (f Facts) KernelAtLeast(major, minor int) bool {
	var x, y int
	if n, _ := fmt.Sscanf(f.Kernel, "%d.%d", &x, &y); n != 2 {
		return false
	}
	return x > major || x == major && y >= minor
}
