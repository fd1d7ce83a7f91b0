package function

import (
	"encoding/binary"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// resultSize is how large the memfd of a result is, and maxMessage and maxStack how much of an error's texts are in it.
const resultSize, maxMessage, maxStack = 64 << 10, 16 << 10, 32 << 10

// Kinds of result, the first byte.
const (
	resultNone = iota // the function has not ended
	resultOK
	resultError
	resultPanic
)

// encodeResult is what a process writes. The first byte makes it valid, and is written last.
func encodeResult(kind byte, message, stack string) []byte {
	b := []byte{kind}
	for _, s := range []string{message[:min(len(message), maxMessage)], stack[:min(len(stack), maxStack)]} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

// decodeResult reads what a process has written, or whatever has got hold of its memory. ended is how the process ended.
func decodeResult(function string, b []byte, ended error) error {
	if len(b) == 0 || b[0] == resultNone {
		return &policy.FuncError{Function: function, Message: "the process ended before the function returned", Err: ended}
	}
	kind := b[0]
	message, b, ok := cutText(b[1:])
	stack, _, ok2 := cutText(b)
	switch {
	case !ok || !ok2 || kind > resultPanic || len(message) > maxMessage || len(stack) > maxStack:
		return &policy.FuncError{Function: function, Message: "the process has written a result that is none", Err: ended}
	case kind == resultOK && ended == nil:
		return nil
	case kind == resultOK:
		return &policy.FuncError{Function: function, Message: "the process ended badly after the function had returned", Err: ended}
	}
	return &policy.FuncError{Function: function, Message: strings.ToValidUTF8(message, "\uFFFD"), Panicked: kind == resultPanic, Stack: strings.ToValidUTF8(stack, "\uFFFD"), Err: ended}
}
