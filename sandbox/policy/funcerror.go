package policy

import "github.com/holdfast-dev/holdfast/internal/errtext"

// A FuncError is what Wait returns of a function of this program (sandbox.Func) that has returned an error, has panicked, or whose process
// has ended in another way before it returned. Its texts were written inside the sandbox: they are no evidence.
type FuncError struct {
	Function string
	// Message is the text of the error or the panic's value, cut at 16 KiB.
	Message string
	// Panicked says that the function panicked, and Stack where, cut at 32 KiB.
	Panicked bool
	Stack    string
	// Err is how the process ended, an [*exec.ExitError]; nil: with exit status 0.
	Err error
}

func (e *FuncError) Error() string {
	verb := ": "
	if e.Panicked {
		verb = " panicked: "
	}
	return "sandbox: function " + errtext.Printable(e.Function) + verb + errtext.Printable(e.Message)
}

// Unwrap returns Err.
func (e *FuncError) Unwrap() error { return e.Err }
