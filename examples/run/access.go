package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// parseAccess reads an operation and its path, or the address that is
// connected to.
func parseAccess(text string) (sandbox.Access, error) {
	op, about, _ := strings.Cut(text, " ")
	a := sandbox.Access{Op: sandbox.Op(op)}
	if a.Op == sandbox.OpConnect && !strings.HasPrefix(about, "/") {
		host, port, err := net.SplitHostPort(about)
		if err != nil {
			return a, fmt.Errorf("-allows %q: %w", text, err)
		}
		a.Network, a.Host = "tcp", host
		a.Port, err = strconv.Atoi(port)
		return a, err
	}
	if a.Op == sandbox.OpConnect || a.Op == sandbox.OpBind {
		a.Network = "unix"
	}
	a.Dir = a.Op == sandbox.OpList
	if about == "" {
		return a, nil
	}
	abs, err := filepath.Abs(about)
	if err != nil {
		return a, err
	}
	a.Path = resolved(abs)
	return a, nil
}

// resolved follows the links of as much of p as exists: a policy means places.
func resolved(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil || p == "/" {
		return real
	}
	return filepath.Join(resolved(filepath.Dir(p)), filepath.Base(p))
}
