package runner

import (
	"fmt"
	"syscall"

	"github.com/holdfast-dev/holdfast/rlimit"
)

// InheritedLimits are the harness's own limits. Those that this system does not
// have are unlimited.
func InheritedLimits() (rlimit.Values, error) {
	var v rlimit.Values
	for r := range v {
		v[r] = rlimit.Limit{Soft: rlimit.Unlimited, Hard: rlimit.Unlimited}
		number, ok := KernelResources[rlimit.Resource(r)]
		if !ok {
			continue
		}
		var l syscall.Rlimit
		if err := syscall.Getrlimit(number, &l); err != nil {
			return v, fmt.Errorf("sandbox: read the present limits: %w", err)
		}
		v[r] = rlimit.Limit{Soft: givenLimit(l.Cur), Hard: givenLimit(l.Max)}
	}
	return v, nil
}

func givenLimit(n uint64) uint64 {
	if n >= kernelLimit(rlimit.Unlimited) {
		return rlimit.Unlimited
	}
	return n
}
