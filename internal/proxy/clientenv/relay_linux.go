package clientenv

import (
	"os"
	"path"
)

// init makes this program a relay where a sandbox shows it as one. The name is
// the kernel's, of the file that was executed: no argument can fake it.
func init() {
	if name, err := os.Readlink("/proc/self/exe"); err == nil && path.Base(name) == RelayName {
		os.Exit(Relay(os.Args[1:], os.Getenv("HTTPS_PROXY"), os.Stdin, os.Stdout, os.Stderr))
	}
}
