package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
)

func sshString(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func sign(key, data string) []byte {
	return slices.Concat([]byte{sshSignRequest}, sshString(key), sshString(data), []byte{0, 0, 0, 0})
}

func identities(pairs ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{sshIdentitiesAnswer}, uint32(len(pairs)/2))
	for _, s := range pairs {
		b = append(b, sshString(s)...)
	}
	return b
}

// sshTalk sends one request through a filter to an agent that gives one answer.
func sshTalk(t *testing.T, refused func(string), request, answer []byte) (got, passed []byte, err error) {
	t.Helper()
	tool, inside := net.Pipe()
	outside, real := net.Pipe()
	done, asked := make(chan error, 1), make(chan []byte, 1)
	go func() { done <- SSH(inside, outside, refused); inside.Close(); outside.Close() }()
	go func() {
		m, _ := readSSH(real)
		asked <- m
		if m != nil {
			writeSSH(real, answer)
		}
	}()
	if err := writeSSH(tool, request); err == nil {
		got, _ = readSSH(tool)
	}
	tool.Close()
	err = <-done
	real.Close()
	return got, <-asked, err
}

func TestAnSSHAgentListsAndSignsAndDoesNothingElse(t *testing.T) {
	bind := append([]byte{sshExtension}, sshString("session-bind@openssh.com")...)
	for _, c := range []struct {
		name            string
		request, answer []byte
		pass            bool
	}{
		{"identities are listed", []byte{sshRequestIdentities}, identities("k", "c"), true},
		{"a request to sign passes", sign("k", "data"), append([]byte{sshSignResponse}, sshString("sig")...), true},
		{"session-bind passes", append(bind, "rest"...), []byte{sshSuccess}, true},
		{"query is refused", append([]byte{sshExtension}, sshString("query")...), []byte{sshSuccess}, false},
		{"an extension without a name is refused", []byte{sshExtension}, []byte{sshSuccess}, false},
		{"a key is not added", append([]byte{17}, sshString("ssh-ed25519")...), []byte{sshSuccess}, false},
		{"a constrained key is not added", []byte{25, 1}, []byte{sshSuccess}, false},
		{"a key is not removed", append([]byte{18}, sshString("k")...), []byte{sshSuccess}, false},
		{"all keys are not removed", []byte{19}, []byte{sshSuccess}, false},
		{"a smartcard's keys are not added", []byte{20}, []byte{sshSuccess}, false},
		{"the agent is not locked", append([]byte{22}, sshString("p")...), []byte{sshSuccess}, false},
		{"the agent is not unlocked", append([]byte{23}, sshString("p")...), []byte{sshSuccess}, false},
		{"a request to sign with bytes behind it is refused", append(sign("k", "d"), 0), []byte{sshSuccess}, false},
		{"a request to sign that is cut is refused", sign("k", "d")[:9], []byte{sshSuccess}, false},
		{"a length beyond the message is refused", []byte{sshSignRequest, 0xff, 0xff, 0xff, 0xff}, []byte{sshSuccess}, false},
		{"a request of an unknown type is refused", []byte{200}, []byte{sshSuccess}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var refused []string
			got, passed, err := sshTalk(t, func(s string) { refused = append(refused, s) }, c.request, c.answer)
			if err != nil {
				t.Fatal(err)
			}
			if c.pass && (!bytes.Equal(passed, c.request) || !bytes.Equal(got, c.answer) || refused != nil) {
				t.Errorf("agent got %v, tool got %v, refused %q", passed, got, refused)
			}
			if !c.pass && (passed != nil || !bytes.Equal(got, []byte{sshFailure}) || len(refused) != 1) {
				t.Errorf("agent got %v, tool got %v, refused %q", passed, got, refused)
			}
		})
	}
}

func TestAnAnswerToAnotherQuestionEndsTheConnection(t *testing.T) {
	for name, answer := range map[string][]byte{
		"identities for a signature":     identities("k", "c"),
		"success for a signature":        {sshSuccess},
		"an extension's failure for one": {sshExtensionFailure},
	} {
		if got, _, err := sshTalk(t, nobody, sign("k", "d"), answer); !errors.Is(err, ErrProtocol) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestAMessageOfMegabytesIsNotRead(t *testing.T) {
	for _, n := range []uint32{0, sshLongest + 1, 1 << 31} {
		_, err := readSSH(bytes.NewReader(binary.BigEndian.AppendUint32(nil, n)))
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("a message of %d bytes: %v", n, err)
		}
	}
}

// nobody is told of what is refused.
func nobody(string) {}
