package sbpl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// A family is what Linux makes of operations that no path, address or process
// decides about. The longest prefix of an operation's name counts.
type family struct {
	prefix string
	none   string // what Linux does not have
	allow  string // what is narrower when it is allowed
	deny   string // what is the sandbox's own when it is denied
	wide   string // what is wider when a rule that names it denies it
}

var families = []family{
	{prefix: "mach", none: "Linux has no Mach services, tasks or ports"},
	{prefix: "iokit", none: "Linux has no IOKit"},
	{prefix: "appleevent", none: "Linux has no Apple events"},
	{prefix: "distributed-notification", none: "Linux has no distributed notifications"},
	{prefix: "darwin-notification", none: "Linux has no Darwin notifications"},
	{prefix: "user-preference", none: "Linux has no preferences service"},
	{prefix: "managed-preference", none: "Linux has no preferences service"},
	{prefix: "hid-control", none: "Linux has no HID service"},
	{prefix: "lsopen", none: "Linux has no Launch Services"},
	{prefix: "job-creation", none: "Linux has no launchd"},
	{prefix: "authorization", none: "Linux has no Authorization Services"},
	{prefix: "device", none: "devices are files here, and the sandbox has a /dev of its own"},
	{prefix: "nvram", none: "no variable of the firmware can be reached"},
	{prefix: "qtn", none: "Linux has no quarantine"},
	{prefix: "fs-", none: "Linux has no such events"},
	{prefix: "generic-issue-extension", none: "Linux has no sandbox extensions"},
	{prefix: "file-issue-extension", none: "Linux has no sandbox extensions"},
	{prefix: "dynamic-code", deny: "a process can make its own memory executable"},
	{prefix: "process-codesigning", none: "Linux signs no code"},
	{prefix: "process-iopolicy", none: "Linux has no I/O policies of this kind"},
	{prefix: "boot-", none: "no boot argument can be reached"},
	{prefix: "socket-", none: "no socket option is told from another"},
	{prefix: "syscall", none: "the numbers of macOS's system calls mean nothing here"},
	{prefix: "necp", none: "Linux has no such network policies"},
	{prefix: "opendirectory", none: "Linux has no Open Directory"},
	{prefix: "system-privilege", none: "the sandbox has no privileges"},
	{prefix: "system-", none: "nothing of the system's own can be changed from within", allow: "nothing of the system's own can be changed from within"},
	{prefix: "system-socket", allow: "only the families of sockets that the system call profile knows", deny: "a socket can be made; what it reaches, other rules say"},
	{prefix: "sysctl", none: "Linux has other names, as files of /proc/sys, which the sandbox sees read-only"},
	{prefix: "ipc-posix", allow: "the sandbox has shared memory and semaphores of its own", deny: "shared memory and semaphores exist among the sandbox's own processes"},
	{prefix: "ipc-sysv", allow: "the sandbox has an ipc namespace of its own", deny: "queues, semaphores and shared memory exist among the sandbox's own processes"},
	{prefix: "pseudo-tty", deny: "the sandbox has terminals of its own"},
	{prefix: "file-ioctl", allow: "only on what is shown, and on no device but the sandbox's own", deny: "commands that devices do not share are taken from what is shown"},
	{prefix: "file-mount", none: "nothing can be mounted"},
	{prefix: "file-unmount", none: "nothing can be mounted"},
	{prefix: "file-chroot", none: "the root cannot be changed"},
	{prefix: "file-revoke", none: "Linux has no revoke(2)"},
	{prefix: "file-search", none: "Linux has no searchfs(2)"},
	{prefix: "process-info", allow: "the sandbox's processes see no others", deny: "the sandbox's own processes can be seen"},
	{prefix: "process-legacy", none: "Linux has no such call"},
	{prefix: "process-exec-interpreter", wide: "a script is executed where its interpreter is"},
	{prefix: "process-exec-update-label", none: "Linux has no such labels"},
	{prefix: "load-unsigned-code", none: "Linux signs no code"},
	{prefix: "forbidden-exec-sugid", none: "setuid bits have no effect inside"},
	{prefix: "forbidden-write-sugid", wide: setuid},
	{prefix: "file-write-setugid", wide: setuid},
	{prefix: "file-write-acl", wide: "an access control list is an extended attribute"},
	{prefix: "file-clone", wide: "what may be read and what may be created can share their blocks"},
	{prefix: "file-lock", wide: "what is shown can be locked"},
	{prefix: "file-test-existence", wide: "what is shown can be found"},
	{prefix: "file-mknod", none: "no device can be made"},
}

const setuid = "a file can be made with its setuid or setgid bit"

// familyOf finds an operation's family; a wildcard is asked by its own name.
func familyOf(operation string) *family {
	var best *family
	for i := range families {
		f := &families[i]
		if strings.HasPrefix(operation, f.prefix) && (best == nil || len(f.prefix) > len(best.prefix)) {
			best = f
		}
	}
	return best
}

// classify gives each rule its class.
func (c *compiler) classify() {
	for i := range c.rules {
		rule := &c.rules[i]
		var source seatbelt.Rule
		if i < len(c.profile.Rules) {
			source = c.profile.Rules[i]
		} else {
			source = seatbelt.Rule{Action: seatbelt.Deny, Operations: []string{"default"}}
		}
		vacuous := c.vacuous(source)
		c.general(rule, source)
		switch {
		case vacuous != "" && len(rule.Differences) == 0:
			rule.Class, rule.Why = Vacuous, vacuous
		case len(rule.Differences) > 0:
			rule.Class = Approximate
		default:
			rule.Class = Exact
		}
	}
}

// vacuous says why a rule is about nothing; "": it is about something.
func (c *compiler) vacuous(r seatbelt.Rule) string {
	why := ""
	for _, o := range r.Operations {
		f := familyOf(o)
		if f == nil || f.none == "" {
			why = ""
			break
		}
		why = f.none
	}
	if why != "" || len(r.Filters) == 0 {
		return why
	}
	for _, f := range r.Filters {
		if !c.dead(f) {
			return ""
		}
	}
	return "none of its paths exists here, nor anything else that it could match"
}

// dead reports whether a filter can match nothing on this host.
func (c *compiler) dead(f seatbelt.Filter) bool {
	switch f.Kind {
	case "literal", "subpath":
		return !slices.ContainsFunc(f.Args, func(arg string) bool {
			return slices.ContainsFunc(c.here.named(f.Kind, arg), func(p string) bool {
				at := c.find.find(p)
				n := c.at[at.path]
				return absolute(p) && (at.rest == "" && at.path == p || at.rest != "" && len(at.links) == 0 && n != nil && n.cell.write)
			})
		})
	case "require-all":
		return slices.ContainsFunc(f.Sub, c.dead)
	case "require-any":
		return !slices.ContainsFunc(f.Sub, func(s seatbelt.Filter) bool { return !c.dead(s) })
	case "remote", "local":
		return len(f.Sub) > 0 && !slices.ContainsFunc(f.Sub, func(s seatbelt.Filter) bool { return !c.dead(s) })
	case "extension":
		return true
	}
	return false
}

// general writes down what does not depend on paths.
func (c *compiler) general(rule *Rule, r seatbelt.Rule) {
	for _, m := range r.Modifiers {
		switch m.Name {
		case "no-sandbox":
			rule.differ(Narrower, "(with no-sandbox) is never honoured: what is executed stays inside", r.Operations...)
		case "send-signal":
			rule.differ(Narrower, "(with send-signal) is not honoured: what is refused gets an error", r.Operations...)
		}
	}
	c.ownPlaces(rule, r)
	unclean(rule, r.Operations, r.Action == seatbelt.Deny, r.Filters)
	whole := slices.Contains(r.Operations, "default")
	for _, f := range families {
		allow, deny := f.allow, f.deny
		concerned := slices.ContainsFunc(r.Operations, func(o string) bool {
			stem, wild := strings.CutSuffix(o, "*")
			own := familyOf(o)
			return o != "default" && (own != nil && own.prefix == f.prefix || wild && strings.HasPrefix(f.prefix, stem))
		})
		if !concerned && !whole {
			continue
		}
		switch {
		case r.Action == seatbelt.Allow && allow != "":
			rule.differ(Narrower, allow, f.prefix+"*")
		case r.Action == seatbelt.Deny && f.wide != "" && slices.Contains(r.Operations, f.prefix):
			rule.differ(Wider, f.wide, f.prefix)
		case r.Action == seatbelt.Deny && deny != "":
			rule.differ(Own, deny, f.prefix+"*")
		}
	}
}

// unclean writes down that a filter which denies names a path as no path is
// written, and so protects nothing. One that allows so allows nothing.
func unclean(rule *Rule, operations []string, denies bool, filters []seatbelt.Filter) {
	for _, f := range filters {
		unclean(rule, operations, denies != (f.Kind == "require-not"), f.Sub)
		if !denies || f.Kind != "literal" && f.Kind != "subpath" && f.Kind != "prefix" {
			continue
		}
		for _, p := range f.Args {
			if f.Kind == "prefix" && p != "/" {
				p = strings.TrimSuffix(p, "/")
			}
			if !absolute(p) {
				rule.differ(Wider, "("+f.Kind+" "+strconv.Quote(p)+") matches nothing: rules mean paths that are absolute and clean", operations...)
			}
		}
	}
}

// ownPlaces writes down what a rule says of the places that every sandbox has of
// its own.
func (c *compiler) ownPlaces(rule *Rule, r seatbelt.Rule) {
	about := slices.DeleteFunc(slices.Clone(r.Operations), func(o string) bool { return o != "default" && !strings.HasPrefix(o, "file") })
	if len(about) == 0 {
		return
	}
	eachFilter(r.Filters, func(f seatbelt.Filter) {
		for _, p := range f.Args {
			switch {
			case f.Kind != "literal" && f.Kind != "subpath" || !own(p) || c.device(p):
			case r.Action == seatbelt.Deny && c.find.find(p).rest == "":
				rule.differ(Own, "every sandbox has a /dev and a /proc of its own", about...)
			case r.Action == seatbelt.Allow && f.Kind == "subpath":
				rule.differ(Narrower, "of /dev and /proc there is only what every sandbox has", about...)
			}
		}
	})
}
