package seatbelt

// A kind is a row of the table of filters.
type kind struct {
	how       how
	canonical string // of an alias
	fact      string // what a Query's Attributes calls it; "" is the kind's own name
	constants bool   // its arguments are constants (self, AF_UNIX) that need not be bound
	values    []string
}

// A how is the way in which a filter's arguments are compared.
type how uint8

const (
	pathIs        how = iota // the path, or below it, or its beginning, or its text
	pathBelow                //
	pathBegins               //
	pathMatches              //
	pathAncestors            // becomes pathIs
	factIs                   // a fact of the query: exactly, by its beginning, by its text
	factBegins               //
	factMatches              //
	targetIs                 // the process that is meant
	vnodeIs                  // the type of file
	extensionIs              // a class of extension that the process holds
	endpointIs               // an address
	combined                 // require-all and its like
	flagIs                   // a fact that is there, with or without an argument
	never                    // parsed, and nothing in a Query could match it
)

var targets = []string{"self", "same-sandbox", "children", "pgrp", "others"}

var vnodeTypes = []string{
	"REGULAR-FILE", "DIRECTORY", "SYMLINK", "SOCKET", "FIFO", "CHARACTER-DEVICE", "BLOCK-DEVICE", "TTY",
}

// kinds is the table of filters: these, and the families below.
var kinds = withFamilies(map[string]kind{
	"literal":        {how: pathIs},
	"path":           {how: pathIs, canonical: "literal"},
	"path-literal":   {how: pathIs, canonical: "literal"},
	"subpath":        {how: pathBelow},
	"path-subpath":   {how: pathBelow, canonical: "subpath"},
	"prefix":         {how: pathBegins},
	"path-prefix":    {how: pathBegins, canonical: "prefix"},
	"regex":          {how: pathMatches},
	"path-regex":     {how: pathMatches, canonical: "regex"},
	"path-ancestors": {how: pathAncestors, canonical: "literal"},

	// below the mount point, which a Query does not tell
	"mount-relative-literal": {how: never},
	"mount-relative-subpath": {how: never},
	"mount-relative-prefix":  {how: never},
	"mount-relative-regex":   {how: never},

	"remote": {how: endpointIs},
	"local":  {how: endpointIs},

	"target":     {how: targetIs, constants: true, values: targets},
	"vnode-type": {how: vnodeIs, constants: true, values: vnodeTypes},
	"extension":  {how: extensionIs},

	"require-all": {how: combined},
	"require-any": {how: combined},
	"require-not": {how: combined},
})

// named are the filters on one string of the query, which come as NAME,
// NAME-prefix and NAME-regex.
var named = []string{
	"global-name", "local-name", "xpc-service-name", "sysctl-name", "ipc-posix-name", "ipc-sysv-name",
	"notification-name", "preference-domain", "appleevent-destination", "right-name", "nvram-variable",
	"kext-bundle-id", "boot-arg", "info-type", "control-name", "host-special-port", "extension-class", "xattr",
	"iokit-connection", "iokit-property", "iokit-registry-entry-class", "iokit-user-client-class",
	"iokit-registry-entry-attribute", "iokit-usb-interface-class", "mac-policy-name", "service-name",
	"socket-option-name", "process-path", "lsopen-url", "file-attribute", "storage-class", "hid-descriptor", "process-name", "iokit-method",
}

// constantKinds are the filters on a constant, a number or a flag.
var constantKinds = []string{
	"socket-domain", "socket-type", "socket-protocol", "socket-option-level", "fsctl-command", "ioctl-command",
	"syscall-number", "machtrap-number", "kernel-mig-routine", "syscall-mask", "mac-syscall-number", "file-mode", "process-attribute", "system-attribute",
	"device-major", "device-minor", "device-conforms-to", "semaphore-owner", "privilege-id", "necp-client-action", "uid", "gid",
	"fcntl-command", "mach-derived-port-role", "mach-task-special-port", "mount-relation", "owner-uid",
}

// flagKinds are the filters on what the process or the system is.
var flagKinds = []string{
	"debug-mode", "csr", "state-flag", "lockdown-mode", "signing-identifier", "target-signing-identifier", "entitlement-is-present", "entitlement-is-bool-true",
	"entitlement-value", "entitlement-value-regex", "require-entitlement", "require-target-with-entitlement", "apple-internal", "rootless-boot",
	"filesystem-name", "processor-bits", "sandbox-name", "user-approval", "developer-mode",
}

func withFamilies(t map[string]kind) map[string]kind {
	for _, n := range named {
		t[n] = kind{how: factIs}
		t[n+"-prefix"] = kind{how: factBegins, fact: n}
		t[n+"-regex"] = kind{how: factMatches, fact: n}
	}
	for _, n := range constantKinds {
		t[n] = kind{how: factIs, constants: true}
	}
	for _, n := range flagKinds {
		t[n] = kind{how: flagIs, constants: true}
	}
	return t
}

// kindNamed is a row of the table, with its fact filled in. A name that is not in it
// (Options.NewerOperations let it pass) matches nothing.
func kindNamed(name string) kind {
	k, ok := kinds[name]
	if !ok {
		k.how = never
	}
	if k.fact == "" {
		k.fact = name
	}
	return k
}
