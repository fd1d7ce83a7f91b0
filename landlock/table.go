package landlock

import "fmt"

// LatestABI is the highest Landlock ABI this package knows. A kernel with a higher one holds every ruleset of this
// package.
const LatestABI = 11

// Feature is one thing that a Landlock ABI brought. Exactly one of FS, Net, Scope and Flag is set, to one bit.
type Feature struct {
	FS    AccessFS
	Net   AccessNet
	Scope Scope
	Flag  Flags

	ABI     int    // the first Landlock ABI that has it
	Kernel  string // the first Linux release with that ABI; distributions may carry it in older ones
	Without string // what holds on a kernel that lacks it
}

// Name is the feature's name as it prints in its set: "truncate", "bind_tcp", "signal", "tsync".
func (f Feature) Name() string {
	switch {
	case f.FS != 0:
		return f.FS.String()
	case f.Net != 0:
		return f.Net.String()
	case f.Scope != 0:
		return f.Scope.String()
	}
	return f.Flag.String()
}

// String prints the feature: "truncate (ABI 3, Linux 6.2)".
func (f Feature) String() string {
	return fmt.Sprintf("%s (ABI %d, Linux %s)", f.Name(), f.ABI, f.Kernel)
}

// kernels holds the release that brought each ABI, by the headings "Landlock ABI" and "Previous limitations" of
// https://docs.kernel.org/userspace-api/landlock.html and landlock(7), "VERSIONS".
var kernels = [LatestABI + 1]string{"", "5.13", "5.19", "6.2", "6.7", "6.10", "6.12", "6.15", "7.0", "7.1", "7.2", "7.3"}

// Table returns every feature that this package knows, by ABI and then by kind and bit. The caller may change the slice.
//
// Sources: landlock(7) "VERSIONS" and "Filesystem flags"; the section "Previous limitations" of
// https://docs.kernel.org/userspace-api/landlock.html; include/uapi/linux/landlock.h ("Since ABI n").
func Table() []Feature {
	var t []Feature
	add := func(f Feature, abi int, without string) {
		f.ABI, f.Kernel, f.Without = abi, kernels[abi], without
		t = append(t, f)
	}
	for bit := FSExecute; bit < FSRefer; bit <<= 1 {
		add(Feature{FS: bit}, 1, "nothing is restricted: the kernel has no Landlock")
	}
	add(Feature{FS: FSRefer}, 2, "renames and links between directories are refused everywhere, with EXDEV")
	add(Feature{FS: FSTruncate}, 3, "any file that the file permissions let it write can be emptied by truncate(2)")
	add(Feature{Net: NetBindTCP}, 4, "TCP sockets can be bound to any port")
	add(Feature{Net: NetConnectTCP}, 4, "TCP sockets can be connected to any port")
	add(Feature{FS: FSIoctlDev}, 5, "ioctl works on every device that can be opened")
	add(Feature{Scope: ScopeAbstractUnixSocket}, 6, "abstract UNIX sockets of processes outside can be reached")
	add(Feature{Scope: ScopeSignal}, 6, "processes outside can be signalled as far as the user may")
	for bit := LogSameExecOff; bit <= LogSubdomainsOff; bit <<= 1 {
		add(Feature{Flag: bit}, 7, "denials are not logged to audit")
	}
	add(Feature{Flag: TSync}, 8, "a call restricts the calling thread alone")
	add(Feature{FS: FSResolveUnix}, 9, "UNIX sockets can be reached by path as far as the file permissions allow")
	add(Feature{Net: NetBindUDP}, 10, "UDP sockets can be bound to any port")
	add(Feature{Net: NetConnectSendUDP}, 10, "UDP can be sent to any port")
	add(Feature{Flag: NoNewPrivs}, 11, "no_new_privs has to be set by prctl(2) before")
	return t
}

// Supported returns the rights, scopes and flags that a kernel of the given Landlock ABI knows, as far as this package does.
func Supported(abi int) (AccessFS, AccessNet, Scope, Flags) {
	var all Feature
	for _, f := range Table() {
		if f.ABI <= abi {
			all.FS |= f.FS
			all.Net |= f.Net
			all.Scope |= f.Scope
			all.Flag |= f.Flag
		}
	}
	return all.FS, all.Net, all.Scope, all.Flag
}
