package policy

import "github.com/holdfast-dev/holdfast/internal/errtext"

// A FileRequest is what [Files.Decide] is asked about: an open of a file that exists outside.
//
// It is a plain file of one name: never a directory, device, FIFO or socket, a file with several hard links, one below /proc or on another
// file system of the kernel's own, one that Hide or HideNames has or that the sandbox has a file of its own for, nor one whose path has
// bytes that a terminal would obey. To be written it is not executable, not in a git directory and not of a protected name, which of [Protect]
// Except alone opens. Nothing is created. Only opens are asked about: stat, access and execve fail as without Decide.
//
// To be read, the tool gets a copy, at most 64 MiB, as the file is when the answer comes: it cannot be written or executed, and nothing done to
// it reaches the file. All copies of a run have at most 256 MiB. To be written, the tool gets the file itself,
// with the flags of its open, O_TRUNC among them, until it closes it: it can read it too, and change its mode and times. What is given is the
// very file that was asked about: if another has its path when the answer comes, the open fails.
type FileRequest struct {
	Path    string `json:"path"`              // outside, without links
	Asked   string `json:"asked,omitempty"`   // as the tool has it, if it has led there by links
	Write   bool   `json:"write"`             // false: to be read
	PID     int    `json:"pid,omitempty"`     // of the process, as it is numbered inside
	Claimed string `json:"claimed,omitempty"` // its command line or name: the tool's own text, which can say anything
	Caution string `json:"caution,omitempty"` // why a yes may be a mistake, such as that keys lie there; "": nothing is known
}

// String is the question in words: "read /etc/hosts". Whatever a terminal would obey is escaped.
func (r FileRequest) String() string {
	verb := "read "
	if r.Write {
		verb = "write "
	}
	return verb + errtext.Printable(r.Path)
}
