package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// parseAccess reads an operation and its path, or the address that is
// connected to.
func parseAccess(text string) (sandbox.Access, error) {
	a, err := accessOf(text)
	if err != nil {
		err = fmt.Errorf("-allows %q: %w: an access is an operation with its path or address, such as 'write /etc/hosts' or 'connect example.org:443'", text, err)
	}
	return a, err
}

// alone are the operations that need neither.
var alone = []sandbox.Op{sandbox.OpSignal, sandbox.OpFork, sandbox.OpElevate, sandbox.OpRunFor}

func accessOf(text string) (sandbox.Access, error) {
	op, about, _ := strings.Cut(text, " ")
	a := sandbox.Access{Op: sandbox.Op(op)}
	if a.Op == sandbox.OpConnect && !strings.HasPrefix(about, "/") {
		host, port, err := net.SplitHostPort(about)
		if err != nil {
			return a, err
		}
		a.Network, a.Host = "tcp", host
		a.Port, err = strconv.Atoi(port)
		return a, err
	}
	if a.Op == sandbox.OpConnect || a.Op == sandbox.OpBind {
		a.Network = "unix"
	}
	a.Dir = a.Op == sandbox.OpList
	if about == "" && slices.Contains(alone, a.Op) {
		return a, nil
	} else if about == "" {
		return a, errors.New("nothing follows the operation")
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
