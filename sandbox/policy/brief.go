package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

const (
	mostBriefed  = 8   // items of one list
	longestBrief = 120 // bytes of one item
)

// Brief returns what a language model has to know before it works under the policy, in at most 15 lines: what can be
// written, read and reached, what is limited or private, and what a denial looks like. Long lists are
// cut, with the number of what is left out. It tells the model what to expect and bounds nothing; what held in a run, its
// sandbox.Report says. It does not know what the host lacks. It speaks of commands with a sandbox each; see [Policy.SessionBrief].
func (p Policy) Brief() string {
	return p.brief(brief{life: "run", background: "ends with its command"})
}

// SessionBrief is Brief for the commands of a sandbox.Session, which share what is private and leave servers running.
func (p Policy) SessionBrief() string {
	return p.brief(brief{life: "session", background: "goes on until the session ends: send its output to a file, else the command waits for it"})
}

func (p Policy) brief(b brief) string {
	b.line("Your commands run in a sandbox of the operating system. Nothing inside can switch it off.")
	b.files(p)
	b.network(p)
	b.environment(p)
	b.limits(p)
	if !p.isOpen(BoundProcesses) {
		nested := ""
		if p.Nested {
			nested = " User namespaces and mounts are allowed (bwrap, Chromium's sandbox), cgroup namespaces are not."
		}
		b.line("Processes: other processes of the machine cannot be seen or signalled; what runs in the background %s.%s", b.background, nested)
	}
	b.denials(p)
	return b.String()
}

// denials says what follows from one, and whether the user is told of files that are not shown.
func (b *brief) denials(p Policy) {
	told := " The user is not told which files you did not find: name those that you need."
	switch {
	case p.isOpen(BoundFiles):
		told = ""
	case p.Files.Watch:
		told = " The user is told which files you did not find because they are not shown."
	}
	b.line("A denial is final: the same again, or a way around it, fails too. Say what you need and why; the user can change the policy.%s", told)
}

func (p Policy) isOpen(b Bound) bool { return slices.Contains(p.Open, b) }

type brief struct {
	strings.Builder
	life       string // of what is private: the run, or the session with all its commands
	background string // what becomes of a process there
}

func (b *brief) line(format string, args ...any) {
	fmt.Fprintf(b, format+"\n", args...)
}

// list adds a line for a list that is not empty.
func (b *brief) list(format string, items []string) {
	if len(items) > 0 {
		b.line(format, briefed(items))
	}
}

// briefed is a list in words, cut and printable.
func briefed(items []string) string {
	var list []string
	for _, item := range items[:min(len(items), mostBriefed)] {
		if len(item) > longestBrief {
			item = item[:longestBrief] + "..."
		}
		list = append(list, errtext.Printable(item))
	}
	s := strings.Join(list, ", ")
	if n := len(items) - mostBriefed; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

func (b *brief) files(p Policy) {
	if p.isOpen(BoundFiles) {
		b.line("Files: as the user has them, not bounded.")
		return
	}
	f := p.Files
	if p.Root != nil {
		b.line("Files: a root made for this %s of %d entries; nothing else of the machine is there.", b.life, len(p.Root.Entries))
	} else {
		if p.Dir != "" {
			b.line("Working directory, unless another is set that is shown: %s", briefed([]string{p.Dir}))
		}
		if len(f.Write) == 0 && f.Tmp+f.Home == "" {
			b.line("Writable, and kept: nothing.")
		}
		b.list("Writable, and kept: %s", f.kept())
		b.list("Private to the "+b.life+", empty at its start and gone after it: %s", f.Private)
		b.list("Writable as a copy, changes are gone after the "+b.life+": %s", f.CopyOnWrite)
		b.list("Readable: %s", f.Read)
		b.line("Nothing else of the machine exists: \"No such file or directory\" or \"Permission denied\" may be the sandbox's answer.")
	}
	if n := len(f.ProtectedPatterns()); n > 0 && (len(f.kept()) > 0 || p.GuardsRoot()) {
		where := ", in directories that you have not made yourself (in a clone of yours they are free)"
		if f.Protect.Everywhere {
			where = ""
		}
		b.line("Not to be made or changed in what is writable%s: %d names that other programs obey (.git/hooks, .bashrc, .vscode, .envrc ...), \"Permission denied\". Git works, but does not check out, stash, reset or remove files of these names there: what it then shows as changed is not yours, so do not commit it.", where, n)
	}
	b.list("Not to be opened in what is writable, whatever the directory: %s", f.HideNames)
}

// kept is what is writable and kept, with its use.
func (f Files) kept() []string {
	list := slices.Clone(f.Write)
	if f.Tmp != "" {
		list = append(list, "TMPDIR, which the user's program sees, unlike a private /tmp: "+f.Tmp)
	}
	if f.Home != "" {
		list = append(list, "HOME: "+f.Home)
	}
	return list
}

func (b *brief) network(p Policy) {
	n := p.Network
	hosts := slices.DeleteFunc(slices.Clone(n.Hosts), isLoopback)
	switch {
	case p.isOpen(BoundNetwork) || n.Host:
		b.line("Network: the machine's, not bounded.")
	case n.Decide != nil:
		b.line("Network: %s; for any other host the user is asked. A denied host is answered with 403 and \"refused by the sandbox\".", orNone(hosts))
	case len(hosts) > 0:
		b.line("Network, by the proxy that the environment names: %s. Any other host is answered with 403 and \"refused by the sandbox\".", briefed(hosts))
	default:
		b.line("Network: no host can be reached; programs say \"refused by the sandbox\", 403 or that they cannot resolve the name.")
	}
	var ports []string
	for _, port := range n.Loopback {
		ports = append(ports, "127.0.0.1:"+strconv.Itoa(int(port)))
	}
	b.list("Servers of the machine that can be reached: %s", slices.Concat(ports, n.Unix))
}

// isLoopback reports whether an entry of Hosts is of addresses that are the tool's own loopback to it: it lets names resolve there.
func isLoopback(entry string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(entry, "["), "]")
	host, _, _ = strings.Cut(host, "/")
	if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func orNone(hosts []string) string {
	if len(hosts) == 0 {
		return "no host by itself"
	}
	return briefed(hosts)
}

func (b *brief) environment(p Policy) {
	var names []string
	for _, c := range p.Network.Credentials {
		names = append(names, c.Name)
	}
	secrets := "Environment: secrets of the user are not in it."
	if p.isOpen(BoundEnvironment) {
		secrets = "Environment: not filtered."
	}
	if len(names) > 0 {
		secrets += " Placeholders that the proxy replaces on the way to their hosts: " + briefed(slices.Sorted(slices.Values(names))) + "."
	}
	b.line("%s", secrets)
}

func (b *brief) limits(p Policy) {
	var list []string
	if p.Limits.WallClock > 0 {
		list = append(list, "each command is ended after "+p.Limits.WallClock.String())
	}
	if text, err := p.Limits.Rlimits.MarshalJSON(); err == nil {
		if s := strings.NewReplacer("{", "", "}", "", `"`, "", ",", ", ", ":", " ").Replace(string(text)); s != "" && s != "null" {
			list = append(list, "each process: "+s)
		}
	}
	amounts := map[string]int64{"connections at one time": int64(p.Network.Limits.Connections), "bytes by network": p.Network.Limits.Bytes, "bytes a second by network": p.Network.Limits.Rate}
	for _, what := range slices.Sorted(maps.Keys(amounts)) {
		if n := amounts[what]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, what))
		}
	}
	b.list("Limits: %s", list)
}
