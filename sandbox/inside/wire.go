package inside

import (
	"encoding/binary"
	"errors"
)

// Server is the name of the server's function. Its standard input is a socket, from which it takes connections.
const Server = "holdfast files"

// What is asked for, one of these. The answer to the first three carries a descriptor.
const (
	opOpen  = 1 + iota // an open file, by flags and permissions
	opStat             // an O_PATH descriptor of what the name leads to
	opLstat            // an O_PATH descriptor of the name itself
	opMkdir
	opMkdirAll
	opRemove
	opRemoveAll
	opRename  // to the other name
	opSymlink // whose target is the other name
	opLast
)

// maxName is PATH_MAX, with the zero that names have in the kernel; maxOp that of an operation's name, and maxMessage more than any message.
const maxName, maxOp, maxMessage = 4096, 16, 16 << 10

// A request is one message to the server. One that writes has a second answer, empty, once the server has closed its own descriptor:
// until then the file could not be executed (ETXTBSY of execve(2)).
type request struct {
	op          byte
	flags, perm uint32
	name, other string
}

func (r request) writes() bool { return r.op == opOpen && r.flags&3 != 0 } // O_ACCMODE; O_RDONLY is 0

// An answer is one message from it. op and path say what has failed where that is not the request's own name, as in RemoveAll.
type answer struct {
	errno    uint32
	op, path string
}

var errMessage = errors.New("the file server's message is malformed")

func (r request) encode() []byte {
	b := make([]byte, 0, 32+len(r.name)+len(r.other))
	b = binary.LittleEndian.AppendUint32(append(b, r.op), r.flags)
	b = binary.LittleEndian.AppendUint32(b, r.perm)
	return appendText(appendText(b, r.name), r.other)
}

func decodeRequest(b []byte) (r request, err error) {
	if len(b) < 9 || b[0] == 0 || b[0] >= opLast {
		return r, errMessage
	}
	r.op, r.flags, r.perm = b[0], binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])
	b = b[9:]
	if r.name, b, err = cutText(b, maxName); err == nil {
		r.other, b, err = cutText(b, maxName)
	}
	if err == nil && len(b) > 0 {
		err = errMessage
	}
	return r, err
}

func (a answer) encode() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 32), a.errno)
	return appendText(appendText(b, a.op[:min(len(a.op), maxOp)]), a.path[:min(len(a.path), maxName)])
}

// decodeAnswer reads what may be anything.
func decodeAnswer(b []byte) (a answer, err error) {
	const maxErrno = 4095 // MAX_ERRNO of include/linux/err.h
	if len(b) < 4 {
		return a, errMessage
	}
	if a.errno, b = binary.LittleEndian.Uint32(b), b[4:]; a.errno > maxErrno {
		return a, errMessage
	}
	if a.op, b, err = cutText(b, maxOp); err == nil {
		a.path, b, err = cutText(b, maxName)
	}
	for _, c := range []byte(a.op) {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			err = errMessage
		}
	}
	if err != nil || len(b) > 0 {
		return answer{}, errMessage
	}
	return a, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func cutText(b []byte, most int) (string, []byte, error) {
	if len(b) < 2 {
		return "", nil, errMessage
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; n > most || n > len(b) {
		return "", nil, errMessage
	}
	return string(b[:n]), b[n:], nil
}
