//go:build !linux

package host

// Read returns facts that all answer no: there is nothing to build on here.
func Read() Facts {
	no := func(name string) Fact {
		return Fact{Name: name, Answer: No, Reason: "this is not Linux", Remedy: "run on Linux"}
	}
	return Facts{
		Namespaces: no("namespaces"), Overlay: no("overlayfs in a user namespace"), Landlock: no("Landlock"),
		Seccomp: no("seccomp filters"), Notify: no("seccomp user notification"),
		Memory: no(memoryName), Take: no(takeName), Keyring: no("session keyrings"), TUN: no("TUN devices"),
		Calls: no("calls of a start"), PIDFD: no("pidfds"),
	}
}
