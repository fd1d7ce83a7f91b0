package commandtest

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// sessionDifferences are those that a session's commands alone have.
var sessionDifferences = map[string]string{
	"setsid": "a command of a session leads a session of its own inside (setsid(2)), so that a signal to its group is for its processes alone",
	"tty":    "a terminal that was not there when the session was opened has no name inside: /dev/tty is not there",
}

// noTTY is what bash says then.
const noTTY = "bash: line 1: /dev/tty: No such file or directory\n"

// sessionDiffers are the differences of each case.
var sessionDiffers = map[string][]diff{
	"no attributes":          {{"setsid", "stdout", "no terminal\n", "leads its group\nleads its session\nno terminal\n"}},
	"a controlling terminal": {{"tty", "terminal", "words\na terminal\n33 99\n", noTTY + "a terminal\n33 99\n"}},
	"a controlling terminal by Ctty": {{"tty", "terminal", "words\n", noTTY}, {"tty", "Wait", "<nil>", "exit status 1"}, {"tty", "Wait, Stderr", absent, `""`},
		{"tty", "Wait, code", absent, "1"}, {"tty", "Wait, type", absent, "*exec.ExitError"}},
}

// sessionSame are the cases that observe with a session's commands what they observe with os/exec: what they leave in the background lives on, and
// their processes see each other.
var sessionSame = []string{"a process in the background dies with the tool", "an orphan that holds the pipe, and WaitDelay", "Setpgid", "Setsid"}

// inSession is a case as a session's commands have it.
func inSession(c diffCase) diffCase {
	if slices.Contains(sessionSame, c.name) {
		c.differs = nil
	}
	c.differs = slices.Concat(c.differs, sessionDiffers[c.name])
	return c
}

// openSession opens the session in which the table is run once more, one command after another, as an ordinary user and if all tests are
// asked for; nil: there can be none here, or it is not asked for.
func openSession(t *testing.T, s *sandbox.Sandbox, as kerneltest.User) *sandbox.Session {
	if !kerneltest.All(t) || as != kerneltest.Ordinary {
		return nil
	}
	sess, err := s.Open(t.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Logf("no session: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	c := sess.Command("/bin/true")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}}
	var refused *policy.PolicyError
	if err := c.Run(); !errors.As(err, &refused) || refused.Field != "SysProcAttr.Credential" {
		t.Errorf("Credential: %v", err)
	}
	return sess
}

// prepare makes single commands find sessions that wait for them, until the test ends.
func prepare(t *testing.T, s *sandbox.Sandbox) *sandbox.Sandbox {
	if err := s.Prepare(2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Prepare(0) })
	return s
}

// prepared is a case as a command has it that finds a session which waits: as any other single command, but for setsid.
func prepared(c diffCase) diffCase {
	for _, d := range sessionDiffers[c.name] {
		if c.name == "no attributes" {
			c.differs = append(slices.Clone(c.differs), d)
		}
	}
	return c
}
