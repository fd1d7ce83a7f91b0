package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An assuan is one connection of each side: the tool sends a line, the agent
// answers with lines until one begins with OK or ERR. With INQUIRE the agent asks
// back, and the tool sends lines until END or CAN.
type assuan struct {
	tool, agent     *bufio.Reader
	toTool, toAgent io.Writer
}

// inquiries are what an agent may ask of the tool: that it knows of the pinentry,
// and what is to be signed. None asks for a passphrase.
var inquiries = []string{"PINENTRY_LAUNCHED", "HASHVAL", "TBSDATA"}

// mostLines bounds the lines of one answer and of one inquiry, so that neither
// side keeps the other for ever.
const mostLines = 10000

func (c *assuan) pass(line string) error {
	if err := writeLine(c.toAgent, line); err != nil {
		return err
	}
	return c.answer()
}

// answer passes the agent's lines on, to the one that ends the answer.
func (c *assuan) answer() error {
	for range mostLines {
		line, err := readLine(c.agent)
		if err != nil {
			return err
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "OK", "ERR":
			return writeLine(c.toTool, line)
		case "S", "D":
			err = writeLine(c.toTool, line)
		case "INQUIRE":
			err = c.inquire(line, rest)
		default:
			if !strings.HasPrefix(line, "#") {
				return fmt.Errorf("%w: the agent's line %.20q", ErrProtocol, line)
			}
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: an answer without end", ErrProtocol)
}

// inquire passes an inquiry on and its lines back. One that is not for the tool
// is cancelled in its place.
func (c *assuan) inquire(line, rest string) error {
	if about, _, _ := strings.Cut(rest, " "); !slices.Contains(inquiries, about) {
		return writeLine(c.toAgent, "CAN")
	}
	if err := writeLine(c.toTool, line); err != nil {
		return err
	}
	for range mostLines {
		line, err := readLine(c.tool)
		if err != nil {
			return err
		}
		word, _, _ := strings.Cut(line, " ")
		ends := word == "END" || word == "CAN"
		if !ends && word != "D" {
			return fmt.Errorf("%w: a command within an inquiry", ErrProtocol)
		}
		if ends {
			line = word
		}
		if err := writeLine(c.toAgent, line); err != nil || ends {
			return err
		}
	}
	return fmt.Errorf("%w: an inquiry without end", ErrProtocol)
}

// readLine reads a line without its end, LF or CR LF. A line that is too long, or
// that the end of the connection cuts, is an error. A lone CR is refused, and NUL
// but for lines of data, which are binary: what reads C strings would see another
// line than the one that was judged.
func readLine(r *bufio.Reader) (string, error) {
	raw, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, assuanLongest)
	case errors.Is(err, io.EOF) && len(raw) > 0:
		return "", io.ErrUnexpectedEOF
	case err != nil:
		return "", err
	}
	line := strings.TrimSuffix(string(raw[:len(raw)-1]), "\r")
	if !strings.HasPrefix(line, "D ") && strings.ContainsAny(line, "\x00\r") {
		return "", fmt.Errorf("%w: a control character in a line", ErrProtocol)
	}
	return line, nil
}

func writeLine(w io.Writer, line string) error {
	_, err := io.WriteString(w, line+"\n")
	return err
}
