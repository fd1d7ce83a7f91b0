package commandtest

// differences is every known difference between a sandbox's command and
// os/exec's, and why it is one. Each is asserted, with its values, in the cases
// that name it.
var differences = map[string]string{
	"background":   "when the tool has ended, everything that it left behind is dead",
	"cancel":       "a sandbox's command always has a context, by which it is hooked, and so a Cancel: os/exec refuses the one without the other",
	"capabilities": "root's tool has no capabilities, and so does not go where root alone could",
	"core":         "the stage dies by the tool's signal and leaves no core of its own, so the flag is not set",
	"cwd":          "a working directory that is no longer there can be shown in no root",
	"descriptors":  "descriptors that the harness opened without close-on-exec are closed, but for ExtraFiles",
	"env":          "of an Env of the command's own, what is as in the harness's environment passes the policy's filter",
	"nul":          "a NUL byte is a PolicyError that names the field, and EINVAL whatever os/exec makes of it",
	"pid":          "the tool is in a pid namespace of its own: its parent there is the sandbox's init, and the leader of its group, the stage, is outside",
	"sockets":      "a socket of the harness's network is not handed over: it could be connected anew, to anywhere",
	"string":       "os/exec's String panics without Args; a sandbox's does not",
}
