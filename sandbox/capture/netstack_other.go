//go:build !linux

package capture

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Netstack is a [policy.Capture] by way of gVisor's network stack. Here it
// returns an error that wraps errors.ErrUnsupported: there are no devices.
func Netstack(*os.File, policy.CaptureGate) (stop func(), err error) {
	return nil, fmt.Errorf("capture: there is no device for it on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
