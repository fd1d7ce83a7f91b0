// Package gittext reads the texts of a git directory that git obeys, and says which lines are harmless: a configuration, a .gitmodules, a
// rebase's todo and options, MERGE_RR.
//
//	var t gittext.Text // 64 KiB; filled by the caller
//	for t.Rewind(); t.Next(); {
//		if t.Judge() == gittext.Foreign {
//			return errRefused
//		}
//	}
//
// The list is of what is harmless, since git runs more with each version: a line that this package does not understand is Foreign. Whether a
// path is that of a directory it does not ask: such a line is IfDirectory, and the supervisor looks.
//
//	text.go     a text, and the cursor on its lines
//	config.go   a configuration: the grammar and the harmless keys
//	url.go      the URL of a remote
//	modules.go  .gitmodules
//	format.go   how large the names of objects are, by the configuration
//	obeyed.go   texts beside the configuration
//	strategy.go how commits are merged
//
// It runs in the sandbox's init, under the rules for package supervisor's serving path: no allocation, no runtime, each index masked or
// checked. TestBareCodeCallsNoRuntime of package archtest holds it to that.
//
// # Limits
//
// A text is at most 64 KiB. What git obeys in the work tree alone (attributes, ignore files) is not read here.
package gittext
