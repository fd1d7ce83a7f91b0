package agent

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// gpgTalk sends lines through a filter to an agent that answers each command with
// what answers says, or OK. It returns what the tool and the agent have read.
func gpgTalk(t *testing.T, refused func(string), answers map[string]string, send ...string) (tool, agent []string, err error) {
	t.Helper()
	in, inside := net.Pipe()
	outside, real := net.Pipe()
	done, heard, said := make(chan error, 1), make(chan []string, 1), make(chan []string, 1)
	go func() { done <- GPG(inside, outside, refused); inside.Close(); outside.Close() }()
	go func() {
		var lines []string
		io.WriteString(real, "OK Pleased to meet you\n")
		for s := bufio.NewScanner(real); s.Scan(); {
			lines = append(lines, s.Text())
			if a, ok := answers[s.Text()]; ok {
				io.WriteString(real, a)
			} else if s.Text() != "D x" {
				io.WriteString(real, "OK\n")
			}
		}
		heard <- lines
	}()
	go func() {
		var lines []string
		for s := bufio.NewScanner(in); s.Scan(); {
			lines = append(lines, s.Text())
		}
		said <- lines
	}()
	for _, line := range send {
		io.WriteString(in, line+"\n")
	}
	io.WriteString(in, "BYE\n")
	err = <-done
	in.Close()
	real.Close()
	return <-said, <-heard, err
}

const grip = "0123456789ABCDEF0123456789ABCDEF01234567"

func TestAGPGAgentSignsAndDoesNothingElse(t *testing.T) {
	for _, c := range []struct {
		line string
		fate gpgFate
	}{
		{"SIGKEY " + grip, gpgPass}, {"PKSIGN", gpgPass}, {"pksign", gpgPass}, {"SETHASH 8 00", gpgPass}, {"HAVEKEY " + grip, gpgPass},
		{"KEYINFO --list", gpgPass}, {"READKEY " + grip, gpgPass}, {"GETINFO version", gpgPass}, {"RESET", gpgPass}, {"OPTION allow-pinentry-notify", gpgPass},
		{"OPTION ttyname=/dev/pts/1", gpgDrop}, {"OPTION putenv=DISPLAY=:1", gpgDrop}, {"OPTION display=:1", gpgDrop},
		{"OPTION pinentry-mode=loopback", gpgRefuse}, {"OPTION  --pinentry-mode = loopback", gpgRefuse},
		{"SETKEY " + grip, gpgRefuse}, {"PKDECRYPT", gpgRefuse}, {"EXPORT_KEY " + grip, gpgRefuse}, {"KEYWRAP_KEY --export", gpgRefuse}, {"IMPORT_KEY", gpgRefuse},
		{"GENKEY", gpgRefuse}, {"DELETE_KEY " + grip, gpgRefuse}, {"PASSWD " + grip, gpgRefuse}, {"GET_PASSPHRASE x", gpgRefuse}, {"PRESET_PASSPHRASE " + grip, gpgRefuse},
		{"CLEAR_PASSPHRASE x", gpgRefuse}, {"GET_CONFIRMATION x", gpgRefuse}, {"SCD SERIALNO", gpgRefuse}, {"LEARN", gpgRefuse}, {"KEYTOCARD x", gpgRefuse},
		{"MARKTRUSTED x", gpgRefuse}, {"PUTVAL x", gpgRefuse}, {"GETVAL x", gpgRefuse}, {"KILLAGENT", gpgRefuse}, {"RELOADAGENT", gpgRefuse}, {"UPDATESTARTUPTTY", gpgRefuse},
		{"GETINFO socket_name", gpgRefuse}, {"GETINFO pid", gpgRefuse}, {"GETINFO", gpgRefuse}, {"READKEY --card x", gpgRefuse}, {"KEYINFO --ssh-list", gpgRefuse},
		{" EXPORT_KEY " + grip, gpgRefuse}, {"EXPORT_KEY\t" + grip, gpgRefuse}, {"GETINFO\tsocket_name", gpgRefuse}, {"INPUT FD=3", gpgRefuse}, {"D data", gpgRefuse}, {"END", gpgRefuse}, {"HELP", gpgRefuse},
	} {
		tool, agent, err := gpgTalk(t, nobody, nil, c.line)
		want := map[gpgFate]string{gpgPass: "OK", gpgDrop: "OK", gpgRefuse: forbidden}[c.fate]
		if err != nil || len(tool) != 3 || tool[1] != want || slices.Contains(agent, c.line) != (c.fate == gpgPass) {
			t.Errorf("%q: the tool read %q, the agent %q, %v", c.line, tool, agent, err)
		}
	}
}

func TestAPassphraseIsNeverAskedOfTheTool(t *testing.T) {
	answers := map[string]string{"PKSIGN": "INQUIRE PASSPHRASE\n", "CAN": "ERR 67108949 canceled\n"}
	tool, agent, err := gpgTalk(t, nobody, answers, "PKSIGN")
	if err != nil || !slices.Equal(agent, []string{"PKSIGN", "CAN", "BYE"}) || slices.ContainsFunc(tool, func(l string) bool { return strings.HasPrefix(l, "INQUIRE") }) {
		t.Errorf("the tool read %q, the agent %q, %v", tool, agent, err)
	}
}

func TestAnInquiryOfWhatIsToBeSignedIsAnswered(t *testing.T) {
	answers := map[string]string{"PKSIGN": "INQUIRE HASHVAL\n"}
	tool, agent, err := gpgTalk(t, nobody, answers, "PKSIGN", "D x", "END")
	if err != nil || !slices.Equal(agent, []string{"PKSIGN", "D x", "END", "BYE"}) || !slices.Contains(tool, "INQUIRE HASHVAL") {
		t.Errorf("the tool read %q, the agent %q, %v", tool, agent, err)
	}
}

func TestACommandWithinAnInquiryDoesNotReachTheAgent(t *testing.T) {
	_, agent, err := gpgTalk(t, nobody, map[string]string{"PKSIGN": "INQUIRE HASHVAL\n"}, "PKSIGN", "EXPORT_KEY "+grip)
	if !errors.Is(err, ErrProtocol) || slices.Contains(agent, "EXPORT_KEY "+grip) {
		t.Errorf("the agent read %q, %v", agent, err)
	}
}

func TestALineThatReadsInTwoWaysEndsTheConnection(t *testing.T) {
	for name, line := range map[string]string{
		"a NUL": "NOP\x00EXPORT_KEY", "a lone CR": "NOP\rEXPORT_KEY", "a line of two thousand bytes": "SETKEYDESC " + strings.Repeat("a", 2000),
	} {
		if _, agent, err := gpgTalk(t, nobody, nil, line); !errors.Is(err, ErrProtocol) || len(agent) != 0 {
			t.Errorf("%s: the agent read %q, %v", name, agent, err)
		}
	}
}

// FuzzGPG holds what reaches the agent against the list of what may.
func FuzzGPG(f *testing.F) {
	f.Add([]byte("SIGKEY x\nPKSIGN\nD a\nEND\nBYE\n"), []byte("OK\nOK\nINQUIRE HASHVAL\nOK\n"))
	f.Add([]byte("OPTION pinentry-mode=loopback\n"), []byte("OK\nERR 1\n"))
	f.Fuzz(func(t *testing.T, tool, agent []byte) {
		var toTool, toAgent bytes.Buffer
		GPG(pair{bytes.NewReader(tool), &toTool}, pair{bytes.NewReader(agent), &toAgent}, nobody)
		for line := range strings.Lines(toAgent.String()) {
			word, _, _ := strings.Cut(strings.ToUpper(strings.TrimSuffix(line, "\n")), " ")
			if !slices.Contains(append([]string{"GETINFO", "OPTION", "D", "END", "CAN"}, gpgPassed...), word) {
				t.Fatalf("the agent read %q", line)
			}
		}
	})
}

// FuzzSSH does the same, with whatever the agent answers.
func FuzzSSH(f *testing.F) {
	frame := func(m []byte) []byte { var b bytes.Buffer; writeSSH(&b, m); return b.Bytes() }
	f.Add(frame(sign("k", "d")), frame(append([]byte{sshSignResponse}, sshString("s")...)))
	f.Add(frame([]byte{sshRequestIdentities}), frame(identities("k", "c", "l", "d")))
	f.Add(frame([]byte{19}), []byte{})
	f.Fuzz(func(t *testing.T, tool, agent []byte) {
		var toTool, toAgent bytes.Buffer
		SSH(pair{bytes.NewReader(tool), &toTool}, pair{bytes.NewReader(agent), &toAgent}, nobody)
		for toAgent.Len() > 0 {
			m, err := readSSH(&toAgent)
			if err != nil || m[0] != sshRequestIdentities && m[0] != sshSignRequest && m[0] != sshExtension {
				t.Fatalf("the agent read %v, %v", m, err)
			}
		}
	})
}

type pair struct {
	io.Reader
	io.Writer
}
