package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// parseAct reads a deed and what it is about: a path, or an address that is
// connected to.
func parseAct(text string) (sandbox.Act, error) {
	deed, about, _ := strings.Cut(text, " ")
	a := sandbox.Act{Do: sandbox.Deed(deed)}
	if a.Do == sandbox.ToConnect && !strings.HasPrefix(about, "/") {
		host, port, err := net.SplitHostPort(about)
		if err != nil {
			return a, fmt.Errorf("-allows %q: %w", text, err)
		}
		a.Network, a.Host = "tcp", host
		a.Port, err = strconv.Atoi(port)
		return a, err
	}
	if a.Do == sandbox.ToConnect || a.Do == sandbox.ToBind {
		a.Network = "unix"
	}
	a.Dir = a.Do == sandbox.ToList
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
