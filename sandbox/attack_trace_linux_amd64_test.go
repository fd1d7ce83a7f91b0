package sandbox

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// traceChild traces a child to the entry of a system call. With change it
// makes that call io_uring_setup: before Linux 4.8 the filter had been asked
// already and was not asked again (seccomp(2), Caveats).
func traceChild(change bool) func(ground) error {
	return func(ground) error {
		runtime.LockOSThread()
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := c.Start(); err != nil {
			return err
		}
		pid := c.Process.Pid
		var status unix.WaitStatus
		defer func() {
			unix.Kill(pid, unix.SIGKILL)
			unix.Wait4(pid, &status, 0, nil)
		}()
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
			return fmt.Errorf("not stopped: %v", err)
		}
		if !change {
			return nil
		}
		var regs unix.PtraceRegs
		step := func() error {
			if err := unix.PtraceSyscall(pid, 0); err != nil {
				return err
			}
			if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
				return fmt.Errorf("the child ended: %v %v", status, err)
			}
			return unix.PtraceGetRegs(pid, &regs)
		}
		if err := step(); err != nil { // at the entry
			return err
		}
		regs.Orig_rax, regs.Rdi, regs.Rsi = unix.SYS_IO_URING_SETUP, 1, regs.Rsp-4096
		if err := unix.PtraceSetRegs(pid, &regs); err != nil {
			return err
		}
		if err := step(); err != nil { // at the exit
			return err
		}
		if result := int64(regs.Rax); result < 0 {
			return fmt.Errorf("the call failed: %w", syscall.Errno(-result))
		}
		return nil
	}
}
