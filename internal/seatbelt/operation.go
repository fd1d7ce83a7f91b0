package seatbelt

import (
	"slices"
	"strings"
)

// An Argument is what an operation is asked about.
type Argument string

// The kinds of arguments.
const (
	NoArgument Argument = "none"
	PathOf     Argument = "path"
	AddressOf  Argument = "address" // or the path of a unix socket
	NameOf     Argument = "name"
	TargetOf   Argument = "target"
)

// An Operation is a row of seatbelt's table of operations.
type Operation struct {
	Name     string
	Parent   string // the wildcard above, "default" at last; "" for default itself
	Argument Argument
	About    string
}

// operations is the table: names that profiles of macOS 10.6 to 26 use. Which ones a system
// has differs with its version.
var operations = []Operation{
	{"default", "", NoArgument, "the root: whatever no other rule decides"},
	{"appleevent-send", "default", NameOf, "send an Apple event to another program"},
	{"authorization-right-obtain", "default", NameOf, "obtain an authorization right"},
	{"boot-arg-set", "default", NameOf, "set a kernel boot argument"},
	{"darwin-notification-post", "default", NameOf, "post a Darwin notification"},
	{"device*", "default", NoArgument, "devices of the machine"},
	{"device-camera", "device*", NoArgument, "use a camera"},
	{"device-microphone", "device*", NoArgument, "use a microphone"},
	{"distributed-notification-post", "default", NameOf, "post a distributed notification"},
	{"dynamic-code-generation", "default", NoArgument, "make memory executable that was written"},
	{"file*", "default", PathOf, "everything about files"},
	{"file-chroot", "file*", PathOf, "change the root directory"},
	{"file-clone", "file*", PathOf, "clone a file"},
	{"file-fsctl", "file*", PathOf, "fsctl on a file (older name)"},
	{"file-ioctl", "file*", PathOf, "ioctl on a file, usually a device"},
	{"file-issue-extension", "file*", PathOf, "hand another process an extension for a path"},
	{"file-link", "file*", PathOf, "make a hard link to a file"},
	{"file-lock", "file*", PathOf, "lock a file"},
	{"file-map-executable", "file*", PathOf, "map a file's pages as executable"},
	{"file-mknod", "file*", PathOf, "make a device node"},
	{"file-mount", "file*", PathOf, "mount a file system"},
	{"file-mount-update", "file*", PathOf, "change a mount's options"},
	{"file-read*", "file*", PathOf, "every way of reading"},
	{"file-read-data", "file-read*", PathOf, "read a file's contents, or list a directory"},
	{"file-read-metadata", "file-read*", PathOf, "stat: size, times, owner, mode, a link's target"},
	{"file-read-xattr", "file-read*", PathOf, "read extended attributes"},
	{"file-revoke", "file*", PathOf, "revoke other processes' access to a file"},
	{"file-search", "file*", PathOf, "searchfs over a volume"},
	{"file-test-existence", "file*", PathOf, "learn whether a file exists"},
	{"file-unlink", "file*", PathOf, "remove a file (older name)"},
	{"file-unmount", "file*", PathOf, "unmount a file system"},
	{"file-write*", "file*", PathOf, "every way of changing"},
	{"file-write-acl", "file-write*", PathOf, "change an access control list"},
	{"file-write-create", "file-write*", PathOf, "create a file, directory, link or node, also as a rename's target"},
	{"file-write-data", "file-write*", PathOf, "write or truncate a file's contents"},
	{"file-write-finderinfo", "file-write*", PathOf, "change the Finder's attributes"},
	{"file-write-flags", "file-write*", PathOf, "chflags"},
	{"file-write-mode", "file-write*", PathOf, "chmod"},
	{"file-write-owner", "file-write*", PathOf, "chown"},
	{"file-write-setugid", "file-write*", PathOf, "chmod to setuid or setgid"},
	{"file-write-times", "file-write*", PathOf, "utimes"},
	{"file-write-umount", "file-write*", PathOf, "unmount a file system (older name)"},
	{"file-write-mount", "file-write*", PathOf, "mount a file system (older name)"},
	{"file-write-unlink", "file-write*", PathOf, "remove a file or directory, also as a rename's source"},
	{"file-write-xattr", "file-write*", PathOf, "write or remove extended attributes"},
	{"forbidden-*", "default", NoArgument, "what a sandboxed process must not do at all"},
	{"forbidden-exec-sugid", "forbidden-*", PathOf, "execute a setuid or setgid program"},
	{"forbidden-sandbox-reinit", "forbidden-*", NoArgument, "enter a second sandbox"},
	{"forbidden-write-sugid", "forbidden-*", PathOf, "write a setuid or setgid bit"},
	{"fs-quota*", "default", PathOf, "file system quotas"},
	{"fs-quota-get", "fs-quota*", PathOf, "read a quota"},
	{"fs-quota-on", "fs-quota*", PathOf, "turn quotas on"},
	{"fs-quota-off", "fs-quota*", PathOf, "turn quotas off"},
	{"fs-quota-set", "fs-quota*", PathOf, "set a quota"},
	{"fs-quota-stat", "fs-quota*", PathOf, "read a quota's state"},
	{"fs-rename", "default", PathOf, "rename a volume"},
	{"fs-snapshot*", "default", PathOf, "file system snapshots"},
	{"fs-snapshot-create", "fs-snapshot*", PathOf, "make a snapshot"},
	{"fs-snapshot-delete", "fs-snapshot*", PathOf, "delete a snapshot"},
	{"fs-snapshot-mount", "fs-snapshot*", PathOf, "mount a snapshot"},
	{"fs-snapshot-revert", "fs-snapshot*", PathOf, "go back to a snapshot"},
	{"generic-issue-extension", "default", NameOf, "hand another process an extension of any class"},
	{"hid-control", "default", NameOf, "control human interface devices"},
	{"iokit*", "default", NameOf, "drivers"},
	{"iokit-async-external-method", "iokit*", NameOf, "call a driver's asynchronous method"},
	{"iokit-external-method", "iokit*", NameOf, "call a driver's method"},
	{"iokit-external-trap", "iokit*", NameOf, "call a driver's trap"},
	{"iokit-get-properties", "iokit*", NameOf, "read a driver's properties"},
	{"iokit-issue-extension", "iokit*", NameOf, "hand another process an extension for a driver"},
	{"iokit-open", "iokit*", NameOf, "open a user client of a driver"},
	{"iokit-open*", "iokit*", NameOf, "open a user client or a service"},
	{"iokit-open-service", "iokit-open*", NameOf, "open a driver's service"},
	{"iokit-open-user-client", "iokit-open*", NameOf, "open a user client of a class"},
	{"iokit-set-properties", "iokit*", NameOf, "change a driver's properties"},
	{"ipc*", "default", NameOf, "POSIX and System V IPC"},
	{"ipc-posix*", "ipc*", NameOf, "POSIX IPC"},
	{"ipc-posix-issue-extension", "ipc-posix*", NameOf, "hand another process an extension for an IPC object"},
	{"ipc-posix-sem", "ipc-posix*", NameOf, "POSIX semaphores (older name for all of them)"},
	{"ipc-posix-sem*", "ipc-posix*", NameOf, "POSIX semaphores"},
	{"ipc-posix-sem-create", "ipc-posix-sem*", NameOf, "create a semaphore"},
	{"ipc-posix-sem-open", "ipc-posix-sem*", NameOf, "open a semaphore"},
	{"ipc-posix-sem-post", "ipc-posix-sem*", NameOf, "post a semaphore"},
	{"ipc-posix-sem-unlink", "ipc-posix-sem*", NameOf, "remove a semaphore"},
	{"ipc-posix-sem-wait", "ipc-posix-sem*", NameOf, "wait for a semaphore"},
	{"ipc-posix-shm", "ipc-posix*", NameOf, "POSIX shared memory (older name for all of it)"},
	{"ipc-posix-shm*", "ipc-posix*", NameOf, "POSIX shared memory"},
	{"ipc-posix-shm-read*", "ipc-posix-shm*", NameOf, "read shared memory"},
	{"ipc-posix-shm-read-data", "ipc-posix-shm-read*", NameOf, "map shared memory for reading"},
	{"ipc-posix-shm-read-metadata", "ipc-posix-shm-read*", NameOf, "stat shared memory"},
	{"ipc-posix-shm-write*", "ipc-posix-shm*", NameOf, "write shared memory"},
	{"ipc-posix-shm-write-create", "ipc-posix-shm-write*", NameOf, "create shared memory"},
	{"ipc-posix-shm-write-data", "ipc-posix-shm-write*", NameOf, "map shared memory for writing"},
	{"ipc-posix-shm-write-unlink", "ipc-posix-shm-write*", NameOf, "remove shared memory"},
	{"ipc-sysv*", "ipc*", NameOf, "System V IPC"},
	{"ipc-sysv-msg", "ipc-sysv*", NameOf, "System V message queues"},
	{"ipc-sysv-sem", "ipc-sysv*", NameOf, "System V semaphores"},
	{"ipc-sysv-shm", "ipc-sysv*", NameOf, "System V shared memory"},
	{"job-creation", "default", PathOf, "give launchd a job"},
	{"load-unsigned-code", "default", PathOf, "load code without a signature"},
	{"lsopen", "default", PathOf, "open a document or program by Launch Services"},
	{"mach*", "default", NameOf, "Mach ports and tasks"},
	{"mach-bootstrap", "mach*", NoArgument, "talk to the bootstrap port"},
	{"mach-cross-domain-lookup", "mach*", NameOf, "look a service up in another domain"},
	{"mach-derive-port", "mach*", NameOf, "derive a port of a task"},
	{"mach-host*", "mach*", NoArgument, "the host's ports"},
	{"mach-host-exception-port-set", "mach-host*", NoArgument, "set the host's exception port"},
	{"mach-host-special-port-set", "mach-host*", NameOf, "set a special port of the host"},
	{"mach-issue-extension", "mach*", NameOf, "hand another process an extension for a service"},
	{"mach-kernel-endpoint", "mach*", NameOf, "talk to a kernel endpoint"},
	{"mach-lookup", "mach*", NameOf, "look up a service of the bootstrap server"},
	{"mach-message-send", "mach*", NameOf, "send a Mach message of some number"},
	{"mach-per-user-lookup", "mach*", NameOf, "look up a service of the user's domain"},
	{"mach-priv*", "mach*", TargetOf, "privileged ports"},
	{"mach-priv-host-port", "mach-priv*", NoArgument, "the host's privileged port"},
	{"mach-priv-task-port", "mach-priv*", TargetOf, "another process's task port"},
	{"mach-register", "mach*", NameOf, "register a service"},
	{"mach-task*", "mach*", TargetOf, "tasks"},
	{"mach-task-exception-port-set", "mach-task*", TargetOf, "set a task's exception port"},
	{"mach-task-name", "mach*", TargetOf, "another process's name port"},
	{"mach-task-read", "mach-task*", TargetOf, "another process's read port"},
	{"mach-task-inspect", "mach-task*", TargetOf, "another process's inspect port"},
	{"mach-task-special-port*", "mach-task*", TargetOf, "a task's special ports"},
	{"mach-task-special-port-get", "mach-task-special-port*", TargetOf, "get a special port of a task"},
	{"mach-task-special-port-set", "mach-task-special-port*", TargetOf, "set a special port of a task"},
	{"managed-preference-read", "default", NameOf, "read a managed preference"},
	{"necp-client-open", "default", NoArgument, "open a client of the network policy"},
	{"network*", "default", AddressOf, "the network and unix sockets"},
	{"network-bind", "network*", AddressOf, "bind a local address, or a unix socket's path"},
	{"network-inbound", "network*", AddressOf, "listen for or accept connections"},
	{"network-outbound", "network*", AddressOf, "connect or send, to an address or a unix socket's path"},
	{"nvram*", "default", NameOf, "firmware variables"},
	{"nvram-delete", "nvram*", NameOf, "delete a firmware variable"},
	{"nvram-get", "nvram*", NameOf, "read a firmware variable"},
	{"nvram-set", "nvram*", NameOf, "set a firmware variable"},
	{"opendirectory-user-modify", "default", NoArgument, "change a user record"},
	{"process*", "default", PathOf, "processes"},
	{"process-codesigning*", "process*", TargetOf, "code signing"},
	{"process-codesigning-blob-get", "process-codesigning*", TargetOf, "read a process's signature"},
	{"process-codesigning-cdhash-get", "process-codesigning*", TargetOf, "read a code hash"},
	{"process-codesigning-entitlements-blob-get", "process-codesigning*", TargetOf, "read a process's entitlements"},
	{"process-codesigning-entitlements-der-blob-get", "process-codesigning*", TargetOf, "read a process's entitlements in DER"},
	{"process-codesigning-identity-get", "process-codesigning*", TargetOf, "read a process's signing identity"},
	{"process-codesigning-status*", "process-codesigning*", TargetOf, "code signing status"},
	{"process-codesigning-status-get", "process-codesigning-status*", TargetOf, "read the signing status"},
	{"process-codesigning-status-set", "process-codesigning-status*", TargetOf, "change the signing status"},
	{"process-codesigning-teamid-get", "process-codesigning*", TargetOf, "read a process's team"},
	{"process-codesigning-text-offset-get", "process-codesigning*", TargetOf, "read the text's offset"},
	{"process-exec*", "process*", PathOf, "execute programs"},
	{"process-exec", "process-exec*", PathOf, "execute a program"},
	{"process-exec-interpreter", "process-exec*", PathOf, "execute a script's interpreter"},
	{"process-exec-update-label", "process-exec*", PathOf, "change the label at an execve"},
	{"process-fork", "process*", NoArgument, "fork"},
	{"process-info*", "process*", TargetOf, "look at processes"},
	{"process-info-codesignature", "process-info*", TargetOf, "read a process's signature"},
	{"process-info-dirtycontrol", "process-info*", TargetOf, "control a process's dirty state"},
	{"process-info-ledger", "process-info*", TargetOf, "read a process's ledger"},
	{"process-info-listpids", "process-info*", TargetOf, "list processes"},
	{"process-info-pidfdinfo", "process-info*", TargetOf, "look at a process's descriptor"},
	{"process-info-pidfileportinfo", "process-info*", TargetOf, "look at a process's file port"},
	{"process-info-pidinfo", "process-info*", TargetOf, "look at a process"},
	{"process-info-rusage", "process-info*", TargetOf, "read a process's resource usage"},
	{"process-info-setcontrol", "process-info*", TargetOf, "control a process's state"},
	{"process-legacy-codesigning-status*", "process*", TargetOf, "code signing status (older)"},
	{"process-legacy-codesigning-status-get", "process-legacy-codesigning-status*", TargetOf, "read the signing status (older)"},
	{"pseudo-tty", "default", NoArgument, "open a pseudo-terminal"},
	{"qtn-download", "default", PathOf, "quarantine as a download"},
	{"qtn-sandbox", "default", PathOf, "quarantine as made in a sandbox"},
	{"qtn-user", "default", PathOf, "quarantine by the user"},
	{"sandbox-check", "default", TargetOf, "ask what a process's sandbox allows"},
	{"signal", "default", TargetOf, "send a signal"},
	{"socket-ioctl", "default", NoArgument, "ioctl on a socket"},
	{"socket-option*", "default", NoArgument, "socket options"},
	{"socket-option-get", "socket-option*", NoArgument, "read a socket option"},
	{"socket-option-set", "socket-option*", NoArgument, "set a socket option"},
	{"storage-class-map", "default", NameOf, "map a storage class"},
	{"syscall*", "default", NameOf, "system calls"},
	{"syscall-mach", "syscall*", NameOf, "a Mach trap by number"},
	{"syscall-mig", "syscall*", NameOf, "a kernel MIG routine by number"},
	{"syscall-unix", "syscall*", NameOf, "a system call by number"},
	{"sysctl*", "default", NameOf, "kernel variables"},
	{"sysctl-read", "sysctl*", NameOf, "read a kernel variable"},
	{"sysctl-write", "sysctl*", NameOf, "write a kernel variable"},
	{"system*", "default", NoArgument, "the system as a whole"},
	{"system-acct", "system*", PathOf, "process accounting"},
	{"system-audit", "system*", NoArgument, "auditing"},
	{"system-automount", "system*", PathOf, "the automounter"},
	{"system-chud", "system*", NoArgument, "profiling (chud)"},
	{"system-debug", "system*", NoArgument, "kernel debugging"},
	{"system-fcntl", "system*", NameOf, "fcntl commands"},
	{"system-fsctl", "system*", NameOf, "fsctl commands"},
	{"system-info", "system*", NameOf, "facts about the system"},
	{"system-kas-info", "system*", NoArgument, "kernel addresses"},
	{"system-kext*", "system*", NameOf, "kernel extensions"},
	{"system-kext-load", "system-kext*", NameOf, "load a kernel extension"},
	{"system-kext-query", "system-kext*", NoArgument, "list kernel extensions"},
	{"system-kext-unload", "system-kext*", NameOf, "unload a kernel extension"},
	{"system-lcid", "system*", NoArgument, "login context"},
	{"system-mac*", "system*", NoArgument, "the MAC framework"},
	{"system-mac-label", "system*", NoArgument, "MAC labels"},
	{"system-mac-syscall", "system*", NameOf, "a MAC policy's system call"},
	{"system-memorystatus-control", "system*", NameOf, "memory pressure control"},
	{"system-necp-client-action", "system*", NameOf, "an action of a network policy client"},
	{"system-nfssvc", "system*", NoArgument, "NFS service"},
	{"system-package-check", "system*", NoArgument, "package checks"},
	{"system-pipe", "system*", NoArgument, "make a pipe"},
	{"system-privilege", "system*", NameOf, "use a superuser's privilege"},
	{"system-reboot", "system*", NoArgument, "reboot"},
	{"system-sched", "system*", TargetOf, "change another process's scheduling"},
	{"system-set-time", "system*", NoArgument, "set the clock"},
	{"system-socket", "system*", NameOf, "make a socket of a domain, type and protocol"},
	{"system-suspend-resume", "system*", TargetOf, "suspend and resume"},
	{"system-swap", "system*", NoArgument, "swap"},
	{"user-preference*", "default", NameOf, "preferences"},
	{"user-preference-managed", "user-preference*", NameOf, "managed preferences"},
	{"user-preference-read", "user-preference*", NameOf, "read a preference"},
	{"user-preference-write", "user-preference*", NameOf, "write a preference"},
}

var operationNamed = byName(operations)

func byName(table []Operation) map[string]Operation {
	m := make(map[string]Operation, len(table))
	for _, o := range table {
		m[o.Name] = o
	}
	return m
}

// Operations returns the table of operations, the root first.
func Operations() []Operation { return append([]Operation{}, operations...) }

// ownDefaults are operations for which macOS is said to have another default than the profile's, to
// allow, which (deny default) does not reach: Firefox's profiles deny each of them by name
// and say so, and WebKit's say it of process-info*.
var ownDefaults = []string{"process-info*", "nvram*", "iokit-get-properties", "file-map-executable"}

// OwnDefault reports whether macOS is said to allow an operation in spite of (deny
// default). Evaluate does not follow that: it says so in its reason.
func OwnDefault(name string) bool {
	return slices.ContainsFunc(chain(name), func(op string) bool { return slices.Contains(ownDefaults, op) })
}

// chain is an operation and the wildcards above it, up to default.
func chain(name string) []string {
	var up []string
	for name != "" {
		up = append(up, name)
		if o, ok := operationNamed[name]; ok {
			name = o.Parent
		} else {
			name = newerParent(name)
		}
	}
	return up
}

// newerParent is the longest known wildcard that an unknown operation's name begins
// with, or "".
func newerParent(name string) string {
	stem := strings.TrimSuffix(name, "*")
	for i := len(stem) - 1; i > 0; i-- {
		if stem[i] == '-' {
			if up := stem[:i] + "*"; operationNamed[up].Name != "" && up != name {
				return up
			}
		}
	}
	return ""
}
