// Package darwin says what of a policy macOS can hold: the grants from which internal/seatbelt/emit writes a profile for
// sandbox-exec, and for each bound what is held and what is lost.
//
//	p := darwin.Profile{Evaluator: evaluator}
//	e, err := emit.Emit(p.Grants(darwin.Run{Tag: tag}))
//
// It is pure and compiled on every system, so that tests can compare profiles with policies wherever they run.
//
// # Limits
//
// It applies no profile and starts nothing: package runner does, in its files for darwin, with the arguments that are made here.
package darwin
