package policy

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// An Event is something that happened in the life of a run, as [Policy.Observe] is told it. Its Kind says which of the
// pointers are set. It can be logged as JSON, and as a value of package log/slog.
type Event struct {
	Kind    EventKind `json:"event"`
	Time    time.Time `json:"time"`
	Run     uint64    `json:"run"`     // the number of the run, which all of its events have and no other's of this process
	Sandbox uint64    `json:"sandbox"` // the number of its sandbox
	// Session is the run of the session that the run is a command of, or the run itself for a session: that begins with
	// Open, ends with all that is in it, and has the denials and questions of the network that its commands share.
	Session uint64 `json:"session,omitempty"`

	Started *Started     `json:"started,omitempty"`
	Denied  *Violation   `json:"denied,omitempty"` // as the report lists it
	Asked   *Request     `json:"asked,omitempty"`  // of EventAsked and EventAnswered; nil: Files.Decide is asked, about File
	File    *FileRequest `json:"file,omitempty"`   // of the two, if Files.Decide is asked
	Answer  *Verdict     `json:"answer,omitempty"` // of EventAnswered
	Hosts   *Hosts       `json:"hosts,omitempty"`
	Ports   *Ports       `json:"ports,omitempty"`
	Ended   *Ended       `json:"ended,omitempty"`
}

// An EventKind says what an [Event] tells of.
type EventKind string

// The kinds, in the order in which a run has them. Each run that was started has one EventStarted, first, and one EventEnded,
// last. A command that is refused before a process exists has none of them: the error of its Start says why.
const (
	EventStarted EventKind = "started"
	// EventDenied comes with the first denial of a kind, with the Count of that moment. The network's come at once, those of
	// the supervisor some 20 ms later, with their Time: the harness looks for them while the tool runs.
	EventDenied   EventKind = "denied"
	EventAsked    EventKind = "asked"    // Network.Decide or Files.Decide is called; not where an answer was remembered
	EventAnswered EventKind = "answered" // what has become of that call, an answer that did not come included
	EventHosts    EventKind = "hosts"    // of a session: SetHosts has taken effect
	// EventPorts, of a session, comes when what listens inside has changed. The harness looks ten times a second while commands have
	// processes, and less often, every ten seconds at least, where that would take a fiftieth of a processor: a listener that comes and
	// goes in between is not seen.
	EventPorts EventKind = "ports"
	EventEnded EventKind = "ended"
)

// Hosts tells of the hosts that a session can reach, in the notation of [Network.Hosts], and those that it could before.
type Hosts struct {
	Now    []string `json:"now"`
	Before []string `json:"before"`
}

// Ports tells who listens in a session, and who did before: the first 256 of Session.Ports, with a Process that has its numbers and command
// alone. Those that listen when the session ends are not told of again.
type Ports struct {
	Now    []Port `json:"now"`
	Before []Port `json:"before"`
}

// Started tells of a run that begins.
type Started struct {
	PID  int      `json:"pid"` // the command's Process.Pid
	Tool string   `json:"tool"`
	Args []string `json:"args"`          // with the tool's name, as in exec.Cmd
	Dir  string   `json:"dir,omitempty"` // "": the harness's own
}

// Ended tells of a run that is over: none of its processes lives, but for what the tool of a session's command has left.
// What the supervisor denies that from then on is the session's.
type Ended struct {
	Status   string        `json:"status"`        // "exit status 1", "signal: killed", "ended at its deadline, 1m0s", "not started" ...
	ExitCode int           `json:"exit_code"`     // -1: it was ended by a signal, or not started
	Err      string        `json:"err,omitempty"` // why the tool was not executed, or what of the sandbox failed or was cancelled
	Duration time.Duration `json:"nanoseconds"`

	// What all processes of the run together have used; without a PID namespace, the tool and those that ended before it; of a session's
	// command, the tool and what it waited for. A run that was killed from outside (Limits.WallClock, a context's end, Cmd.Cancel, Process.Kill) has no
	// figures: 0, or what had been counted until then, which says nothing of what it used. Limits.Rlimits.CPU ends a process with figures.
	UserTime   time.Duration `json:"user_nanoseconds"`
	SystemTime time.Duration `json:"system_nanoseconds"`
	MaxRSS     int64         `json:"max_rss"` // bytes, of the largest of them

	Sent     int64   `json:"sent"`             // bytes through the proxies and a capture, from the tool
	Received int64   `json:"received"`         // bytes to the tool
	Denied   int     `json:"denied"`           // denials, those of one kind counted each
	Unheld   []Bound `json:"unheld,omitempty"` // bounds that the policy wants and that were not wholly held; the report says why
	Lost     int     `json:"lost,omitempty"`   // events for which Observe was too slow

	// Discarded are the first of the regular files that a single command, or the commands of a session, had left directly in a private HOME or in a private
	// directory around the workspace, but for names that begin with a dot. They are gone.
	Discarded []string `json:"discarded,omitempty"`
}

// LogValue is the event for package log/slog.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("event", string(e.Kind)), slog.Time("at", e.Time), slog.Uint64("run", e.Run), slog.Uint64("sandbox", e.Sandbox)}
	if s := e.Started; s != nil {
		attrs = append(attrs, slog.Int("pid", s.PID), slog.String("tool", s.Tool), slog.Any("args", s.Args), slog.String("dir", s.Dir))
	}
	if v := e.Denied; v != nil {
		attrs = append(attrs, slog.String("bound", string(v.Bound)), slog.String("denied", v.String()))
	}
	if r := e.Asked; r != nil {
		attrs = append(attrs, slog.String("host", Violation{Host: r.Host, Port: r.Port}.Target()), slog.String("protocol", r.Protocol))
		if r.Method != "" {
			attrs = append(attrs, slog.String("request", r.Method+" "+r.Path))
		}
	}
	if r := e.File; r != nil {
		attrs = append(attrs, slog.String("file", r.String()), slog.String("claimed", r.Claimed), slog.String("caution", r.Caution))
	}
	if v := e.Answer; v != nil {
		attrs = append(attrs, slog.Bool("allow", v.Allow), slog.String("why", v.Reason), slog.String("for", v.For.String()))
	}
	if h := e.Hosts; h != nil {
		attrs = append(attrs, slog.Any("hosts", h.Now), slog.Any("before", h.Before))
	}
	if p := e.Ports; p != nil {
		attrs = append(attrs, slog.String("ports", listed(p.Now)), slog.String("before", listed(p.Before)))
	}
	if d := e.Ended; d != nil {
		attrs = append(attrs, slog.String("status", d.Status), slog.Int("exit_code", d.ExitCode), slog.String("err", d.Err), slog.Duration("duration", d.Duration),
			slog.Duration("user_time", d.UserTime), slog.Duration("system_time", d.SystemTime), slog.Int64("max_rss", d.MaxRSS),
			slog.Int64("sent", d.Sent), slog.Int64("received", d.Received), slog.Int("denied", d.Denied), slog.String("unheld", joined(d.Unheld)), slog.Int("lost", d.Lost), slog.Any("discarded", d.Discarded))
	}
	return slog.GroupValue(attrs...)
}

func listed(ports []Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, p.Protocol+" "+netip.AddrPortFrom(p.Address, p.Port).String())
	}
	return strings.Join(list, ", ")
}

func joined(bounds []Bound) string {
	var list []string
	for _, b := range bounds {
		list = append(list, string(b))
	}
	return strings.Join(list, ", ")
}
