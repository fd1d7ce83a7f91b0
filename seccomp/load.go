package seccomp

// LoadOptions says how Program.Load loads. The zero value loads for the whole process.
type LoadOptions struct {
	// ThreadOnly loads for the calling thread alone, and for the processes and threads that it
	// starts from then on. The goroutine is locked to the thread for good
	// (runtime.LockOSThread without its counterpart), so the thread ends with the goroutine.
	ThreadOnly bool

	// Listener asks for a descriptor on which a supervisor receives the calls whose Action is
	// Notify; see seccomp_unotify(2). A thread can have one listener among all its filters.
	Listener bool

	// LogRefused asks the kernel to log what the filter refuses, as far as the sysctl kernel.seccomp.actions_logged says (SECCOMP_FILTER_FLAG_LOG).
	LogRefused bool
}

// Load sets no_new_privs, which seccomp(2) asks for and which cannot be undone, and then loads
// p. It does not check that p is for this machine: one for another architecture kills the
// process at its next system call.
//
// The listener's descriptor is close-on-exec; it is -1 if none was asked for. Errors are
// *LoadError and wrap an errno: EACCES or EINVAL from a kernel that refuses, ESRCH with a
// Thread if that thread has filters that this one has not, so that the two cannot be made
// equal. On systems other than Linux, and for the zero Program, nothing is loaded and the
// error wraps errors.ErrUnsupported or ErrProgram.
func (p Program) Load(o LoadOptions) (listener int, err error) {
	if p.Len() == 0 {
		return -1, &LoadError{Step: "load", Err: &Error{Field: "Program", Detail: "empty", Err: ErrProgram}}
	}
	return p.load(o)
}
