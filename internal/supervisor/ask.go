package supervisor

import "unsafe"

// With Rules.Patience, an open that the policy does not allow is a question to the harness. Init sends it over a socket that
// the two have for this, and keeps the call unanswered; the answer carries the descriptor that the tool gets. See ask_linux.go.

// A Question is about one open that is going to fail.
type Question struct {
	ID    uint64 // of the call: no other of the run has it
	Gone  bool   // the call is answered otherwise, or its process is dead: no answer is waited for
	Errno int    // with which it fails
	Flags int    // of open(2)
	Denial
}

// QuestionBytes is the size of a question on the socket.
const QuestionBytes = int(unsafe.Sizeof(questionRecord{}))

// ReadQuestion reads a message of init's; false: it is none.
func ReadQuestion(b []byte) (Question, bool) {
	r := new(questionRecord)
	if len(b) != QuestionBytes {
		return Question{}, false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(r)), QuestionBytes), b)
	if r.gone != 0 {
		return Question{ID: r.id, Gone: true}, true
	}
	d, ok := denialOf(&r.denial)
	d.NoFollow = r.denial.hit[0]&noFollow != 0
	return Question{ID: r.id, Errno: int(r.errno), Flags: int(r.flags), Denial: d}, ok
}

// AnswerTo is the message that answers a question. A descriptor in it is a yes.
func AnswerTo(id uint64) []byte {
	r := answerRecord{id}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))...)
}
