package sandbox_test

import (
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
)

func init() { sandbox.CaptureForTest = capture.Netstack }
