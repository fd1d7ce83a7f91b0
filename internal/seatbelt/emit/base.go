package emit

import (
	"fmt"
	"slices"
)

// systemReads is what every program of macOS reads before its own first line: the
// loader, its libraries, time zones and the choice of /bin/sh.
var systemReads = []string{
	"/System", "/usr/lib", "/usr/share", "/Library/Apple", "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select",
}

// base is what a process needs to run at all.
func (w *writer) base() {
	w.line("(version 1)")
	w.deny("default")
	w.deny("process-info* nvram* iokit-get-properties") // default is said not to reach them (Firefox's and WebKit's profiles)
	if !w.grants.AllFiles {
		w.deny("file-map-executable")
	}
	w.part("a process, its children and their signals")
	w.allow("process-fork")
	w.allow("process-info* signal mach-priv-task-port", "(target same-sandbox)")
	if w.grants.AllProcesses {
		w.allow("process-info*")
		w.allow("signal")
	}
	w.allow("sysctl-read")
	w.allow("mach-lookup",
		`(global-name "com.apple.system.opendirectoryd.libinfo")`, `(global-name "com.apple.system.opendirectoryd.membership")`,
		`(global-name "com.apple.bsd.dirhelper")`, `(global-name "com.apple.logd")`, `(global-name "com.apple.system.logger")`,
		`(global-name "com.apple.system.notification_center")`)
	w.allow("ipc-posix-shm-read*", `(ipc-posix-name "apple.shm.notification_center")`)
	w.part("what every program reads")
	w.allow("file-read-metadata")
	w.allow("file-read-data", `(literal "/")`) // dyld aborts without (macOS 26)
	if w.grants.AllFiles {
		return
	}
	var filters []string
	for _, p := range systemReads {
		filters = append(filters, w.subpaths(p)...)
	}
	for _, p := range []string{"/private/etc/localtime", "/private/etc/protocols", "/private/etc/services"} {
		filters = append(filters, w.literals(p)...)
	}
	w.allow("file-read* file-read-data file-map-executable", filters...)
	w.deny("file-write-setugid")
}

// devices are those that every tool may expect. A terminal is used by its
// descriptor; one can be opened by name only if it was made inside.
func (w *writer) devices() {
	w.part("devices")
	w.allow("file-read* file-read-data file-write-data", `(literal "/dev/null")`, `(literal "/dev/zero")`, `(literal "/dev/random")`, `(literal "/dev/urandom")`,
		`(literal "/dev/tty")`, `(literal "/dev/dtracehelper")`, `(literal "/dev/autofs_nowait")`)
	w.allow("file-read* file-read-data file-write-data", `(subpath "/dev/fd")`, `(literal "/dev/stdin")`, `(literal "/dev/stdout")`, `(literal "/dev/stderr")`)
	w.allow("file-ioctl", `(literal "/dev/null")`, `(literal "/dev/zero")`, `(literal "/dev/tty")`, `(literal "/dev/dtracehelper")`, `(regex #"^/dev/ttys[0-9]+$")`)
	if w.grants.PTY {
		w.allow("pseudo-tty")
		w.allow("file-read* file-read-data file-write-data file-ioctl", `(literal "/dev/ptmx")`)
		w.allow("file-read* file-read-data file-write-data", `(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`)
	}
}

// tools grants what some programs need beside files.
func (w *writer) tools() {
	t := w.grants.Tools
	if t.TLS {
		w.part("certificates: trustd answers for the system's and Go's libraries")
		w.allow("mach-lookup", `(global-name "com.apple.trustd.agent")`, `(global-name "com.apple.trustd")`, `(global-name "com.apple.ocspd")`)
	}
	if t.Git {
		w.part("xcrun, by which /usr/bin/git finds git")
		var filters []string
		for _, p := range []string{"/Library/Developer/CommandLineTools", "/private/var/db/xcode_select_link", "/private/var/select/developer_dir"} {
			filters = append(filters, w.subpaths(p)...)
		}
		w.allow(reads+" "+executes, filters...)
	}
	if t.Node {
		w.part("V8")
		w.allow("sysctl-write", `(sysctl-name "kern.tcsm_enable")`)
	}
	if t.Python {
		w.part("multiprocessing, OpenMP")
		w.allow("ipc-posix-sem")
		w.allow("ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink", `(ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+")`)
	}
}

// resolvers is what a program asks names and routes of.
var resolvers = []string{
	"com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.dnssd.service", "com.apple.mDNSResponder", "com.apple.networkd",
}

// resolverSocket is where programs ask for names. Whoever answers asks the
// network's name servers, so that a name can carry anything out.
const resolverSocket = "/private/var/run/mDNSResponder"

// resolver keeps that from a tool whose network is bounded, also where the tree
// around it is shown. It comes after everything that shows trees.
func (w *writer) resolver() {
	granted := func(r Rule) bool { return r.Kind == Socket && spellings(r.Path)[0] == resolverSocket }
	if n := w.grants.Network; n.All || !n.Sockets || slices.ContainsFunc(w.grants.Rules, granted) {
		return
	}
	w.part("a question for a name leaves the machine")
	for _, s := range spellings(resolverSocket) {
		w.deny("network-outbound", "(remote unix-socket (path-literal "+w.param("PATH", s)+"))")
	}
}

func (w *writer) network() {
	n := w.grants.Network
	switch {
	case n.All:
		w.part("the network")
		w.allow("network-outbound", `(remote ip "*:*")`, `(literal "/private/var/run/mDNSResponder")`)
		w.allow("network-bind network-inbound", `(local ip "*:*")`)
		w.allow("system-socket")
		var names []string
		for _, s := range resolvers {
			names = append(names, fmt.Sprintf("(global-name %q)", s))
		}
		w.allow("mach-lookup", names...)
	case len(n.Ports) > 0:
		w.part("ports of the machine's loopback, and nothing else")
		for _, port := range n.Ports {
			w.allow("network-outbound", fmt.Sprintf(`(remote tcp "localhost:%d")`, port)) // ip would let datagrams through
		}
	}
}
