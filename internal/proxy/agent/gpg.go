package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// assuanLongest is the longest line of the Assuan protocol, its end included.
const assuanLongest = 1002

// forbidden is GPG_ERR_FORBIDDEN of source GPG_ERR_SOURCE_GPGAGENT, what an agent
// answers on its restricted socket.
const forbidden = "ERR 67109115 Forbidden"

// gpgFate is the decision about a command.
type gpgFate int

const (
	gpgRefuse gpgFate = iota // answered with Forbidden
	gpgDrop                  // answered with OK, and not passed on
	gpgPass
)

// gpgPassed are the commands that gpg needs to sign and that change nothing but
// the connection. What is not here is refused: of a gpg-agent's commands PKDECRYPT,
// GET_PASSPHRASE, PRESET_PASSPHRASE, EXPORT_KEY, IMPORT_KEY, GENKEY, DELETE_KEY,
// PASSWD, SCD, KEYTOCARD, LEARN, MARKTRUSTED, KILLAGENT, RELOADAGENT and others.
var gpgPassed = []string{"NOP", "BYE", "RESET", "AGENT_ID", "GETEVENTCOUNTER", "HAVEKEY", "KEYINFO", "READKEY", "SIGKEY", "SETKEYDESC", "SETHASH", "PKSIGN"}

// gpgInfos are what may be asked by GETINFO: nothing that names a socket, a process
// or a path of the host.
var gpgInfos = []string{"version", "s2k_count", "s2k_time", "s2k_count_cal", "cmd_has_option", "std_startup_env", "restricted"}

// gpgOptions are the options that pass; pinentry-mode is refused, since loopback
// would have the tool asked for the passphrase; others are dropped.
var gpgOptions = []string{"agent-awareness", "allow-pinentry-notify", "use-cache-for-signing"}

// judgeGPG decides on one line of the tool that is not within an inquiry.
func judgeGPG(line string) gpgFate {
	command, rest, _ := strings.Cut(line, " ")
	command, rest = strings.ToUpper(command), strings.TrimLeft(rest, " \t")
	word, _, _ := strings.Cut(rest, " ")
	switch {
	case command == "GETINFO" && slices.Contains(gpgInfos, word):
		return gpgPass
	case command == "OPTION":
		return judgeOption(rest)
	case command != "SETKEYDESC" && asksCard(rest):
		return gpgRefuse
	case slices.Contains(gpgPassed, command):
		return gpgPass
	}
	return gpgRefuse
}

func judgeOption(rest string) gpgFate {
	name, _, _ := strings.Cut(strings.TrimPrefix(rest, "--"), "=")
	switch name = strings.TrimSpace(name); {
	case slices.Contains(gpgOptions, name):
		return gpgPass
	case name == "pinentry-mode":
		return gpgRefuse
	}
	return gpgDrop
}

// asksCard says whether KEYINFO or READKEY is asked of the smartcard, or KEYINFO of
// ssh's list.
func asksCard(rest string) bool {
	words := strings.Fields(rest)
	return slices.Contains(words, "--card") || slices.Contains(words, "--need-attr") || slices.Contains(words, "--ssh-list") || slices.Contains(words, "--ssh-fpr")
}

// GPG serves one connection of the tool with one to the real agent until either
// ends. It closes neither. Each command that is refused is told to refused.
func GPG(inside, outside io.ReadWriter, refused func(string)) error {
	c := &assuan{
		tool: bufio.NewReaderSize(inside, assuanLongest), agent: bufio.NewReaderSize(outside, assuanLongest),
		toTool: inside, toAgent: outside,
	}
	err := c.serve(refused)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *assuan) serve(refused func(string)) error {
	if err := c.answer(); err != nil { // the greeting
		return err
	}
	for {
		line, err := readLine(c.tool)
		if err != nil {
			return err
		}
		if line == "" || line[0] == '#' {
			continue
		}
		switch judgeGPG(line) {
		case gpgPass:
			err = c.pass(line)
		case gpgDrop:
			err = writeLine(c.toTool, "OK")
		default:
			command, _, _ := strings.Cut(line, " ")
			refused(fmt.Sprintf("the command %.40q", command))
			err = writeLine(c.toTool, forbidden)
		}
		if err != nil || strings.EqualFold(line, "BYE") {
			return err
		}
	}
}
