package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The messages of draft-miller-ssh-agent that a filter knows by name.
const (
	sshFailure           = 5
	sshSuccess           = 6
	sshRequestIdentities = 11
	sshIdentitiesAnswer  = 12
	sshSignRequest       = 13
	sshSignResponse      = 14
	sshExtension         = 27
	sshExtensionFailure  = 28
)

// sshLongest is the longest message that OpenSSH's agent reads (AGENT_MAX_LEN).
const sshLongest = 256 << 10

// ErrProtocol is wrapped by the error of a filter whose tool or agent sent what
// the protocol does not have; the connection is over then.
var ErrProtocol = errors.New("not the agent's protocol")

// SSH serves one connection of the tool with one to the real agent until either
// ends. It closes neither. It calls refused for each message that it refuses.
func SSH(inside, outside io.ReadWriter, refused func(string)) error {
	for {
		request, err := readSSH(inside)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ssh-agent request: %w", err)
		}
		answer := []byte{sshFailure}
		if why := judgeSSH(request); why != "" {
			refused(why)
		} else if answer, err = ask(outside, request); err != nil {
			return fmt.Errorf("ssh-agent answer: %w", err)
		}
		if err := writeSSH(inside, answer); err != nil {
			return fmt.Errorf("ssh-agent answer: %w", err)
		}
	}
}

// judgeSSH says why a request is refused, or nothing.
func judgeSSH(request []byte) string {
	kind, rest := request[0], request[1:]
	switch kind {
	case sshRequestIdentities:
		if len(rest) == 0 {
			return ""
		}
		return "a request for identities with something behind it"
	case sshSignRequest:
		return judgeSign(rest)
	case sshExtension:
		if name, _, ok := cutString(rest); !ok || string(name) != "session-bind@openssh.com" {
			return fmt.Sprintf("the extension %.40q", name)
		}
		return ""
	}
	return fmt.Sprintf("the request %d (%s)", kind, sshName(kind))
}

// judgeSign reads string key, string data, uint32 flags.
func judgeSign(rest []byte) string {
	_, rest, ok := cutString(rest)
	if ok {
		_, rest, ok = cutString(rest)
	}
	if !ok || len(rest) != 4 {
		return "a malformed request to sign"
	}
	return ""
}

// ask passes a request on, and gives the answer if it is one to that request.
func ask(outside io.ReadWriter, request []byte) ([]byte, error) {
	if err := writeSSH(outside, request); err != nil {
		return nil, err
	}
	answer, err := readSSH(outside)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return fit(request[0], answer)
}

// fit holds an answer against its request.
func fit(asked byte, answer []byte) ([]byte, error) {
	switch kind := answer[0]; {
	case kind == sshFailure, kind == sshExtensionFailure && asked == sshExtension, kind == sshSuccess && asked == sshExtension:
		return answer[:1], nil
	case kind == sshSignResponse && asked == sshSignRequest, kind == sshIdentitiesAnswer && asked == sshRequestIdentities:
		return answer, nil
	default:
		return nil, fmt.Errorf("%w: answer %d to request %d", ErrProtocol, kind, asked)
	}
}

// readSSH reads one message: its type and contents, at least one byte. Memory is
// taken as bytes arrive, so that a length alone costs nothing.
func readSSH(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > sshLongest {
		return nil, fmt.Errorf("%w: a message of %d bytes", ErrProtocol, n)
	}
	message, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(message) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return message, err
}

func writeSSH(w io.Writer, message []byte) error {
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	_, err := w.Write(append(framed, message...))
	return err
}

// cutString cuts an SSH string, a length and that many bytes, off the front.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, b, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, b, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// sshName names the requests that tools try.
func sshName(kind byte) string {
	names := map[byte]string{
		1: "list keys, version 1", 9: "remove all keys, version 1", 17: "add a key", 18: "remove a key", 19: "remove all keys",
		20: "add a smartcard's keys", 21: "remove a smartcard's keys", 22: "lock", 23: "unlock", 25: "add a constrained key", 26: "add a smartcard's keys, constrained",
	}
	if name, ok := names[kind]; ok {
		return name
	}
	return "unknown"
}
