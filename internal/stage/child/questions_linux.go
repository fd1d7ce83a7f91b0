package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// sendQuestions makes the socket on which the supervisor asks the harness, if its rules want one, and sends the harness's end. As
// makeDenials, it is called once the tool has been executed. Without the socket nothing is asked, and what would be is refused.
//
//go:norace
//go:nocheckptr
func sendQuestions() {
	if st.supervisor == nil || !supervisor.Asks(st.supervisor) {
		return
	}
	if _, errno := sys.Call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0, sys.Addr(&st.questions), 0, 0); errno != 0 {
		return
	}
	st.message = wire.Message{Kind: wire.MsgQuestions}
	_, errno := sendWith(st.questions[1], sys.MSG_DONTWAIT)
	sys.Call(syscall.SYS_CLOSE, uintptr(st.questions[1]), 0, 0, 0, 0, 0)
	if errno != 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(st.questions[0]), 0, 0, 0, 0, 0)
		return
	}
	supervisor.AskBy(st.supervisor, int(st.questions[0]))
}

// questionsFD is what serve polls for the answers; -1: there are none.
//
//go:norace
//go:nocheckptr
func questionsFD() int32 {
	if st.supervisor == nil {
		return -1
	}
	return int32(supervisor.AsksBy(st.supervisor))
}
