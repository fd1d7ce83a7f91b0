package function

import (
	"encoding/binary"
	"errors"
)

// A call is written as callMagic, then each text with its length before it: the function's name and its arguments.
const callMagic = "HOLDFAST FUNCTION\n"

var errCall = errors.New("the call is not one that a sandbox has written")

func encodeCall(name string, args []string) []byte {
	b := []byte(callMagic)
	for _, s := range append([]string{name}, args...) {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

func decodeCall(b []byte) (name string, args []string, err error) {
	if len(b) < len(callMagic) || string(b[:len(callMagic)]) != callMagic {
		return "", nil, errCall
	}
	var texts []string
	for b = b[len(callMagic):]; len(b) > 0; {
		s, rest, ok := cutText(b)
		if !ok {
			return "", nil, errCall
		}
		texts, b = append(texts, s), rest
	}
	if len(texts) == 0 {
		return "", nil, errCall
	}
	return texts[0], texts[1:], nil
}

// cutText cuts a text off that stands behind its length.
func cutText(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 4 {
		return "", nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}
