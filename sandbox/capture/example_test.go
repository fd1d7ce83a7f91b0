package capture_test

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A policy asks for it. The tool reaches example.com by any library that can make
// a TCP connection, and nothing else.
func ExampleNetstack() {
	p := sandbox.Workspace("/srv/project")
	p.Network.Hosts = []string{"example.com:443"}
	p.Network.Capture = capture.Netstack
	fmt.Println(p.Network.Capture != nil)
	// Output: true
}

// What is handed over is closed, whatever comes of it.
func ExampleNetstack_refused() {
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	_, err = capture.Netstack(r, policy.CaptureGate{Address: netip.MustParsePrefix("198.18.0.1/15"), MTU: 65520})
	fmt.Println(err != nil, r.Close() != nil)
	// Output: true true
}
