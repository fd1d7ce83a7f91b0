package runner

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// refused is a denial of the supervisor's, in words.
type refused policy.Violation

const nothing = "nothing does; "

var operations = [...]string{
	supervisor.DeedCall: "make a system call", supervisor.DeedRead: "open for reading", supervisor.DeedWrite: "open for writing",
	supervisor.DeedCreate: "create", supervisor.DeedMakeDir: "make a directory", supervisor.DeedMakeNode: "make a node",
	supervisor.DeedSymlink: "make a symbolic link", supervisor.DeedRemove: "remove", supervisor.DeedRemoveDir: "remove a directory",
	supervisor.DeedRename: "rename", supervisor.DeedExchange: "exchange", supervisor.DeedLink: "make a link", supervisor.DeedTruncate: "truncate",
	supervisor.DeedMode: "change the mode", supervisor.DeedSetID: "set the setuid or setgid bit", supervisor.DeedBind: "bind a socket",
	supervisor.DeedConnect: "connect", supervisor.DeedOwner: "change the owner", supervisor.DeedTimes: "change the times",
	supervisor.DeedTrace: "trace with PTRACE_O_TRACEEXIT", supervisor.DeedAttribute: "change an extended attribute",
	supervisor.DeedLook: "look at", supervisor.DeedExecute: "execute",
}

// JudgeDenial says in words what the supervisor has refused, by the rules it had, as they were encoded, and the policy that they are of.
func JudgeDenial(d supervisor.Denial, rules []byte, files policy.Files) policy.Violation {
	r := refusedOf(d)
	switch d.Deed {
	case supervisor.DeedConnect, supervisor.DeedBind:
		if d.Deed == supervisor.DeedConnect || d.Reason == supervisor.ReasonAddress {
			r.Bound, r.Path = policy.BoundNetwork, addressText([]byte(d.Paths[0]))
		}
	case supervisor.DeedTrace, supervisor.DeedCall:
		r.Bound = policy.BoundSyscalls
	case supervisor.DeedSetID:
		r.Bound = policy.BoundPrivileges
	}
	if d.Reason == supervisor.ReasonName || d.Reason == supervisor.ReasonPrefix {
		r.byRule(supervisor.CauseOf(rules, d), files)
	} else {
		r.byReason(d)
	}
	return r.printable()
}

// refusedOf says what was wanted.
func refusedOf(d supervisor.Denial) refused {
	r := refused{
		Time: time.Unix(d.Seconds, d.Nanoseconds), Bound: policy.BoundFiles, Operation: operations[d.Deed], Path: d.Paths[0], To: d.Paths[1],
		PID: d.PID, Claimed: strings.ReplaceAll(d.Command, "\x00", " "), Count: int(min(d.Count, 1<<31-1)),
	}
	if r.Claimed == "" {
		r.Claimed = d.Name
	}
	return r
}

// printable is the denial with what the tool has written escaped.
func (r refused) printable() policy.Violation {
	for _, s := range []*string{&r.Path, &r.To, &r.Rule, &r.Remedy, &r.Claimed} {
		*s = errtext.Printable(*s)
	}
	return policy.Violation(r)
}

func quoted(p string) string { return strconv.Quote(errtext.Shorten(p)) }

// byRule fills in what the rule on a name says.
func (r *refused) byRule(c supervisor.Cause, files policy.Files) {
	r.Rule = c.Rule
	except := func(name, why string) {
		r.Remedy = fmt.Sprintf("add %q to Files.Protect.Except, if %s", name, why)
	}
	const theirs = "the user's own programs may obey what the tool leaves there"
	switch c.Kind {
	case supervisor.CauseName, supervisor.CauseAbove:
		r.Why = "the policy protects this name"
		if c.Why != "" {
			r.Why = "programs outside the sandbox obey this name (" + c.Why + ")"
		}
		if c.Kind == supervisor.CauseAbove {
			r.Why = "it lies above the protected name " + strconv.Quote(c.Rule)
		}
		switch {
		case c.Kind == supervisor.CauseAbove && strings.HasPrefix(c.Rule, "/"):
			r.Remedy = fmt.Sprintf("add %q to Files.Write, if %s", c.Rule, theirs)
		case slices.Contains(files.Protect.Add, c.Rule):
			r.Remedy = fmt.Sprintf("take %q out of Files.Protect.Add", c.Rule)
		case c.Why == "" && c.Rule != "": // of resolve.Obeyed
			if c.Kind == supervisor.CauseName {
				r.Why = "git outside the sandbox may run it as a hook, since a configuration of git names it (core.hooksPath)"
			}
			r.Remedy = fmt.Sprintf("add %q to Files.Write, which opens that name everywhere, if %s", pathrule.Join(c.Root, c.Rule), theirs)
		case c.Build:
			r.Remedy = "set Files.Protect.BuildFiles, if " + theirs
		default:
			except(c.Rule, theirs)
		}
	case supervisor.CauseGit:
		r.Why = "in a git directory only what is known to be harmless can be changed"
		if c.Why != "" {
			r.Why = "it lies in a git directory (" + c.Why + ")"
		}
		if name := gitName(c.Rule); name != "" {
			except(name, "git outside the sandbox may obey what the tool leaves there")
			break
		}
		r.Remedy = nothing + "git itself can do most of what is needed there"
	case supervisor.CauseHiddenName:
		r.Why, r.Remedy = "the policy hides files of this name", fmt.Sprintf("take %q out of Files.HideNames, if the tool may read the secrets in it", c.Rule)
	case supervisor.CauseHiddenPath:
		r.Why, r.Remedy = "the policy hides this path", fmt.Sprintf("take %q out of Files.Hide, if the tool may read the secrets in it", c.Rule)
	case supervisor.CausePath:
		r.Why, r.Remedy = "the policy does not let this path be changed", fmt.Sprintf("add %q to Files.Write, if %s", c.Rule, theirs)
	default:
		r.Why, r.Remedy = "the policy protects it", nothing+"the tool has to use another name"
	}
}

// gitName is the protected name that leaves a line of the list of git directories' files open when it is taken out; "": there is none.
func gitName(line string) string {
	switch {
	case strings.HasPrefix(line, "hooks/"):
		return ".git/hooks"
	case line == "info/attributes":
		return ".git/info/attributes"
	case line == "config", line == "config.lock":
		return ".git/config"
	}
	return ""
}

// byReason fills in what is refused whatever its name is.
func (r *refused) byReason(d supervisor.Denial) {
	r.Why, r.Remedy = "it cannot be judged", nothing+"the tool has to do it in another way"
	because := func(why, remedy string) { r.Why, r.Remedy = why, remedy }
	switch d.Reason {
	case supervisor.ReasonOwn:
		because("it belongs to the sandbox's own processes", nothing+"they are not the tool's")
	case supervisor.ReasonLost:
		because("the path of its directory cannot be told, or leads elsewhere", nothing+"the directory was removed, its path is too long, or it was reached by another path than the policy's")
	case supervisor.ReasonComplete:
		because("it would make the directory a git directory with hooks, links or settings in it that git would obey", nothing+"git init and git clone make one in an empty directory")
	case supervisor.ReasonCease:
		because("the directory would be a git directory no more, with hooks, links or settings in it that the tool could change then", nothing+"remove those outside of the sandbox first")
	case supervisor.ReasonNewGit:
		because("the policy allows no new git directories", "leave Files.Protect.NoNewRepositories false")
	case supervisor.ReasonConfig:
		name := ".git/config"
		if strings.HasSuffix(d.Paths[d.Side], "/.gitmodules") {
			name = ".gitmodules"
		}
		because("settings would change by which git runs programs or reaches other places", fmt.Sprintf("do it outside of the sandbox, or add %q to Files.Protect.Except, if git outside may obey every setting in it", name))
	case supervisor.ReasonSecondConfig:
		because("git would obey a second file of settings, config.worktree (extensions.worktreeConfig): git sparse-checkout and git config --worktree turn that on", nothing+"do it outside of the sandbox once; a repository that is sparse already can be worked in")
	case supervisor.ReasonText:
		because("what it says would make git outside the sandbox run, delete or write something", nothing+"do it outside of the sandbox")
	case supervisor.ReasonLock:
		because("its lock was made by another git, which may be at work", nothing+"wait for that git, or remove its lock outside of the sandbox")
	case supervisor.ReasonIndex:
		because("the index names files that git would write outside of the work tree, or is still open for writing", nothing+"the tool has to close it, and leave such names out")
	case supervisor.ReasonEntry:
		r.Path, r.To = d.Paths[1], ""
		if strings.HasSuffix(d.Paths[0], "/") {
			because(fmt.Sprintf("the sparse index would bring another content of %s, in which there may be protected names: git outside the sandbox would write them", quoted(d.Paths[0])),
				nothing+"do it outside of the sandbox, or give the repository a full index there: git sparse-checkout reapply --no-sparse-index")
			break
		}
		because(fmt.Sprintf("the index would bring %s, a protected name, with a content that neither the present index nor the work tree has there: git outside the sandbox would write it", quoted(d.Paths[0])),
			nothing+"leave that name out of the index (git add -- . ':!NAME'), or do it outside of the sandbox; a split index that has such names: git update-index --no-split-index")
	case supervisor.ReasonNode:
		because("no link, device or foreign directory comes into a git directory", nothing+"the tool has to make a file")
	case supervisor.ReasonWay:
		because("a .git file leads through this name, or out of the workspace from its new place, so that git outside the sandbox would work on another repository", nothing+"remove the work tree whose .git file it is first, or do it outside of the sandbox")
	case supervisor.ReasonPlace:
		because("a directory or link has been here that the tool had not made, and what it leads to now could be taken for that", nothing+"the tool has to link to what it has not made, or use another name")
	case supervisor.ReasonRace:
		because("another process made it a part of a git directory at the same time", nothing+"try again")
	default:
		r.bySystem(d)
	}
}

// bySystem is byReason for what has to do with no git directory.
func (r *refused) bySystem(d supervisor.Denial) {
	because := func(why, remedy string) { r.Why, r.Remedy = why, remedy }
	switch d.Reason {
	case supervisor.ReasonAddress:
		if because("only the sandbox's own proxies, and servers of the command's own, can be connected to", nothing+"the tool has to use the proxies that its environment names; which hosts they reach is in Network.Hosts"); d.Deed == supervisor.DeedBind {
			because("only the command's own processes can be served, at 127.0.0.1 and ::1", nothing+"the tool has to bind one of these, or every address, which means the same here")
		}
	case supervisor.ReasonSocket:
		because("only sockets that the tool has made itself, of TCP or UNIX, can be used here", nothing+"the tool has to make another")
	case supervisor.ReasonFence:
		because("modes, owners and times are kept outside of what can be written", fmt.Sprintf("add %q to Files.Write", d.Paths[0]))
	case supervisor.ReasonSetID:
		because("the call was made without the bits, by which the file would lend its owner's rights to other accounts", nothing+"set them outside of the sandbox")
	case supervisor.ReasonOthers:
		because("the call was made without the bits by which other accounts could plant protected names in the directory, or read what is hidden there", nothing+"set them outside of the sandbox")
	case supervisor.ReasonMemory:
		because("the process hides its memory, so that what it asks for cannot be read", nothing+"the program's file has to be readable to the tool")
	case supervisor.ReasonMounts:
		because("the process has entered another mount namespace, where paths mean something else", nothing+"the tool has to do it outside of that namespace")
	case supervisor.ReasonTracer:
		because("another process traces with this option already", nothing+"end that tracer first")
	}
}

// addressText is a struct sockaddr in words.
func addressText(b []byte) string {
	const unixPath, inet4, inet6 = 1, 2, 10 // AF_UNIX, AF_INET, AF_INET6 of Linux
	if len(b) < 2 {
		return "no address"
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == inet4 && len(b) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])).String()
	case family == inet6 && len(b) >= 24:
		return net.JoinHostPort(netip.AddrFrom16([16]byte(b[8:24])).String(), strconv.Itoa(int(binary.BigEndian.Uint16(b[2:]))))
	case family == unixPath && len(b) > 2 && b[2] == 0:
		return "@" + string(b[3:])
	case family == unixPath:
		return strings.TrimRight(string(b[2:]), "\x00")
	default:
		return fmt.Sprintf("an address of family %d", family)
	}
}
