package runner

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// A Denial is something that the tool tried and the system refused, as the
// system's log has it. What a terminal would obey, a line's end too, is escaped.
type Denial struct {
	Time      time.Time
	Process   string
	PID       int
	Operation string // such as "file-read-data"
	Target    string
	Times     int // how often in a row
}

// logPredicate selects a run's denials: each ends in its tag, which has no quote.
func logPredicate(tag string) string {
	return `sender == "Sandbox" AND eventMessage ENDSWITH "` + tag + `"`
}

// logArgs are log's arguments for what has been denied since.
func logArgs(tag string, since time.Time) []string {
	return []string{"show", "--style", "ndjson", "--start", since.Add(-time.Second).Format("2006-01-02 15:04:05"), "--predicate", logPredicate(tag)}
}

// denialLine is a message of the sandbox: Sandbox: cat(812) deny(1) file-read-data /etc/passwd.
var denialLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d+) duplicate reports? for )?Sandbox: (.+)\((\d+)\) deny\(\d+\) ([a-z][a-z0-9*-]*)(?: (.*))?$`)
})

// maxDenials is how many denials a report keeps.
const maxDenials = 1000

// parseDenials reads what log has printed, one JSON object in each line. What is not
// a denial with this tag is left out: the log's form is the system's to change.
func parseDenials(text []byte, tag string) []Denial {
	var out []Denial
	for line := range bytes.Lines(text) {
		var event struct {
			Message   string `json:"eventMessage"`
			Timestamp string `json:"timestamp"`
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		d, ok := parseDenial(event.Message, tag)
		if !ok {
			continue
		}
		d.Time, _ = time.Parse("2006-01-02 15:04:05.000000-0700", event.Timestamp)
		if n := len(out); n > 0 && same(out[n-1], d) {
			out[n-1].Times += d.Times
			continue
		}
		if out = append(out, d); len(out) == maxDenials {
			break
		}
	}
	return out
}

func same(a, b Denial) bool {
	return a.Process == b.Process && a.PID == b.PID && a.Operation == b.Operation && a.Target == b.Target
}

// parseDenial reads one message. The tag stands in the last line, or at the end of
// the only one; a path may hold a line's end itself.
func parseDenial(message, tag string) (Denial, bool) {
	rest, ok := strings.CutSuffix(strings.TrimRight(message, "\n"), tag)
	if !ok || tag == "" {
		return Denial{}, false
	}
	rest = strings.TrimRight(rest, " \n")
	first, more, _ := strings.Cut(rest, "\n")
	m := denialLine().FindStringSubmatch(first)
	if m == nil {
		return Denial{}, false
	}
	target := m[5]
	if more != "" {
		target += "\n" + more
	}
	d := Denial{Process: errtext.Printable(m[2]), Operation: m[4], Target: errtext.Printable(target), Times: 1}
	if n, err := strconv.Atoi(m[1]); err == nil {
		d.Times = n
	}
	d.PID, _ = strconv.Atoi(m[3])
	return d, true
}
