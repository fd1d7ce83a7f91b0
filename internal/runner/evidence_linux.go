package runner

import (
	"bytes"
	"os"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"golang.org/x/sys/unix"
)

// readEvidence returns what control says of the tool of a run by plan p, with the harness's own side
// of the comparison. withheld is how many of the harness's variables were not passed; -1: the caller
// chose them. The run's network may be nil.
func readEvidence(p plan.Plan, control *stage.Control, withheld int, network *Network) *Evidence {
	e := &Evidence{
		rootErrno: int(control.Checks[stage.CheckRoot]) - 1, killErrno: int(control.Checks[stage.CheckSignal]) - 1,
		PrivsErrno: int(control.Checks[stage.CheckNoNewPrivs]) - 1,
		keyring:    control.Keyring, initPID: max(control.InitPID, -control.InitPID), own: readOwn(), withheld: withheld,
	}
	e.status, e.limits, e.namespaces = parseEvidence(control.Evidence)
	e.promise(p)
	if network != nil {
		e.proxied, e.captured = network.Served()
	}
	return e
}

// readOwn reads the harness's own side of the comparison.
func readOwn() ownFacts {
	own := ownFacts{namespaces: map[plan.Mechanism]string{}}
	for _, n := range evidenceNamespaces {
		own.namespaces[n.mechanism], _ = os.Readlink("/proc/self/ns/" + n.file)
	}
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		_, rest, _ := bytes.Cut(text, []byte("\nSeccomp_filters:"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		own.filters, _ = strconv.Atoi(string(bytes.TrimSpace(line)))
	}
	if id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err == nil {
		own.keyring = int64(id)
	}
	return own
}
