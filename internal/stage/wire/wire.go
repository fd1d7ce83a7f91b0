// Package wire is the layout that the two halves of the stage share: the
// program the harness writes into a sealed memfd, and the messages that come
// back on the control socket.
//
// Both halves live in the same executable, so the layout is these Go structs
// as they lie in memory; there is no version to negotiate. The package imports
// nothing: the child's half must run before the harness's own packages have
// initialised.
//
//	harness                     stage                      init              tool
//	   | memfd: Header,Ops,Blob   |                          |                 |
//	   |------------------------->|  Ops[InStage]            |                 |
//	   |                          |---- clone(namespaces) -->| Ops[InInit]     |
//	   |<-- MsgInit + pidfd ------|                          |                 |
//	   |<-- MsgPassed + a listener --------------------------|                 |
//	   |                          |                          |-- vfork ------->| Ops[InTool], execve
//	   |<-- MsgStarted, MsgEvidence ----------------------------| (resumes)       |
//	   |                          | signal n: one byte ----->| kill(tool, n)   |
//	   |<-- MsgDeadline ----------|                          |<-- exits -------|
//	   |<-- MsgLost, if init was killed, or the keeper       |
//	   |                          |<-- StatusRecord ---------|
//	   |                          |  waits until init is gone (all the sandbox's processes died before it)
//	   |<-- MsgEnded, if it is wanted                        |
//	   |                          |  ends as the tool ended
//	   |<-- MsgFailed (any of the three, with the step and errno, instead of MsgStarted)
package wire

// Magic opens every program; FDName is the variable of the stage's own
// environment that says which descriptor holds it.
const (
	Magic  = 0x54534146_444c4f48 // "HOLDFAST", little-endian
	FDName = "HOLDFAST_PROGRAM_FD"
	// ExecPath is what the harness executes where there is no trampoline. The
	// kernel shows it to the stage as AT_EXECFN, which no argument or variable of
	// the caller can fake.
	ExecPath = "/proc/self/./exe"
	// NotByASandbox is what a stage says that finds no program.
	NotByASandbox = "this program was executed as a sandbox's stage, but not by a sandbox: its Path, or a copy of its exec.Cmd, was used outside of one"
	// Marker is the stage's and init's thread name.
	Marker = "holdfast/init\x00"
)

// Exit codes of a stage that could not start the tool, for callers that start
// the embedded exec.Cmd themselves. They follow the shells' convention.
const (
	ExitFailed      = 125
	ExitNotRunnable = 126
	ExitNotFound    = 127
	MaxRegisters    = 64
	EvidenceSize    = 16 << 10
	MaxSelfChecks   = 8
	NumberSignals   = 64
)

// Steps that no plan has, for failures outside of the plan. StepKilled is the least of them.
const (
	StepExecute = 0xffff - iota // execve of the tool
	StepClone                   // making a process
	StepPrepare                 // what the stage does before the plan
	StepKilled                  // the tool's system call filter killed it before execve
)

// Evidence: the files of the tool's /proc directory that init reads once the
// tool runs. The first NumberFiles are read, the rest are links to namespaces.
// Each name ends in a zero byte.
const (
	EvidenceNames  = "/status\x00/limits\x00/ns/user\x00/ns/mnt\x00/ns/pid\x00/ns/ipc\x00/ns/uts\x00/ns/cgroup\x00/ns/net\x00"
	NumberFiles    = 2
	NumberEvidence = 9
)

// Where an op runs.
const (
	InStage = iota // the re-exec'd process, outside every namespace
	InInit         // pid 1 of the sandbox
	InTool         // the process that becomes the tool
	Places
)

// Kinds of argument.
const (
	Imm = iota // the value itself
	Ptr        // an offset into the program, made a pointer as the op runs
	Reg        // the value of a register
)

// Pseudo system calls, above every real number.
const (
	OpStore32       = 0x10000 + iota // *(uint32)(arg0) = arg1
	OpStore64                        // *(uint64)(arg0) = arg1
	OpCwd                            // chdir to the directory the stage was started in
	OpBounding                       // drop every capability from the bounding set
	OpSignalInit                     // kill(parent, 0): may the tool signal init?
	OpSignals                        // restore the tool's signal dispositions and mask
	OpListener                       // arg0 is the supervisor's listener descriptor
	OpNull                           // open /dev/null anew for the tool's descriptors that are it
	OpTerminal                       // is descriptor arg0 a terminal? ENOTTY if not; unless arg1 is 0, the supervisor is told of it
	OpJoinNet                        // enter the network namespace that was being made meanwhile (FlagNet)
	OpDetach                         // begin to take the harness's root, descriptor arg0, off beside init
	OpDetached                       // in init: wait until OpDetach is done; unless arg0 is 0, not before a tool of init's own, which does it
	OpRootOff                        // in the tool's process: wait until OpDetach is done
	OpPlace                          // find or make a place below the directory arg0; arg1: a Place
	OpIsFile                         // is descriptor arg0 the file at arg1, two uint64? ESTALE if not
	OpMode                           // change the mode of the file that descriptor arg0 names to arg1
	OpNoUsers                        // a user namespace must not come to be: EEXIST if one does
	OpGate                           // wait for the harness at gate arg0, if the run has it
	OpPass                           // send descriptor arg0 to the harness; arg1: its slot, and the step from bit 16 on
	OpLoad32                         // the result is *(uint32)(arg0)
	OpErrno                          // fail with the errno -*(int32)(arg0), unless that is 0
	OpRegular                        // is descriptor arg0 a regular file? EINVAL if not
	OpOwnPID                         // *(uint32)(arg0) = the number of a process of the sandbox's own, by OwnStage and its like in arg1
	OpNoNewPrivs                     // is no_new_privs set? EPERM if not
	OpWitness                        // start a process, which OpSignalWitness then tries to signal and ends
	OpSignalWitness                  // kill(the witness, 0): may init signal it?
	OpRule                           // add the rule of the access arg0 below descriptor arg1 to the ruleset in RegRuleset
	OpCloseLater                     // in init: close descriptor arg0, by one call with others, before init's ops end
	OpCover                          // move the mount of descriptor arg0 over what is at path arg1 of the new root, without links
	OpNumber                         // append the number of descriptor arg0 to the text at arg1, after a colon unless it is the first
)

// The sandbox's own processes where there is no pid namespace. OwnGroup is the negative
// number of the process group in which the stage, init and the tool begin.
const (
	OwnStage = iota
	OwnKeeper
	OwnInit
	OwnKeeperGroup // the keeper's, negative
	OwnInitGroup   // init's where it has left that of the stage, negative
	OwnGroup
	NumberOwn
)

// Place says what OpPlace does. Its result is a descriptor of the place, but for
// MakeLink.
type Place struct {
	Path    uint32 // offset; from the root, without a leading slash
	Parents uint32 // the mode of directories that are made on the way
	Mode    uint32 // of what is made
	Make    uint32
	Target  uint32 // offset of a link's target
	Plain   uint32 // 1: refuse symbolic links
}

// What OpPlace makes where there is nothing.
const (
	MakeNothing = iota
	MakeDir
	MakeFile  // an empty one, for a mount
	MakeWrite // a regular one to write, emptied if it was there
	MakeLink
)

// Op is one system call. Step names the plan's step it belongs to.
type Op struct {
	Nr     uint32
	Step   uint16
	Ignore [3]uint16 // these errnos are no failure
	Save   int8      // register for the result; -1: none
	Probe  int8      // record the errno in self-check slot Probe-1 and go on, whatever it is; 0: no probe
	Skip   uint8     // after one of the errnos in Ignore, leave out so many of the next ops
	Kind   [6]uint8
	Arg    [6]uint64
}

// Span is a run of bytes or of elements in the program.
type Span struct{ Off, Len uint32 }

// Header opens the program.
type Header struct {
	Magic      uint64
	Size       uint64
	SelfFD     int32 // where the harness put this program
	ControlFD  int32 // where it put the control socket
	HarnessPID int32
	Extra      int32 // number of the tool's descriptors: 3 + len(ExtraFiles)

	Flags       uint64
	InitClone   uint64 // clone flags for init
	DeadlineMS  int64  // 0: none
	IgnoredSigs uint64 // signals ignored in the tool

	Ops        [Places]Span // elements of Op
	Steps      Span         // elements of Span: each step's name, for messages
	Argv       Span         // elements of uint64: offsets, then pointers; the last is 0
	Envp       Span
	Path       uint32 // offset of the tool's path
	Own        uint32 // offset of the path of the run's own directory; 0: none
	Supervisor Span   // the supervisor's rules; empty: no supervisor

	// Given descriptors begin at GivenFD; register RegGiven+i holds i. JoinUser,
	// JoinPID and Exe, the harness's program if the tool is that, count them from 1;
	// 0: none. With FlagCommand the file that Exe says is the last of the tool's own descriptors.
	Given, GivenFD, JoinUser, JoinPID, Exe int32

	PathFD int32 // where the trampoline lies in the place of the tool's descriptor, which is three above the program; 0: it does not

	Paths   uint32 // how many paths stand at Path, each after the other's zero; they are tried in order
	Dirs    Span   // elements of Dir, tried in order; empty: the directory the stage was started in
	DirSlot uint32 // offset of the pointer in Envp that becomes the Dir's variable

	// Session counts the given descriptors from 1: the one that is the session's socket, init's end of
	// it with FlagSession, the harness's with FlagCommand; 0: there is no session. With FlagReady the next is the entrance, init's end of the
	// socket of commands for which a process stands ready.
	Session int32
	Made    int32 // as Session: the file of the record of what tools have made (supervisor.ShareMade); 0: there is none

	// Name is the unstarted tool's thread name, with its zero: a slash and random
	// letters. execve(2) names a thread after the file's last component, which has
	// no slash, so a tool that still bears it was killed before it ran. A tool that
	// could know it might take it on (PR_SET_NAME) and pass for one that never ran.
	Name [16]byte
}

// Dir is a directory to start in, with the variable that says so: offsets. A
// A Variable of 0 sets nothing.
type Dir struct{ Path, Variable uint32 }

// Header flags.
const (
	FlagQuiet    = 1 << iota // the caller reads the control socket: do not write messages to stderr
	FlagPIDNS                // init is pid 1 of a new pid namespace
	FlagProbe                // run the ops, report, do not start a tool
	FlagNet                  // make a network namespace beside init's ops; OpJoinNet enters it
	FlagProcFD               // register RegProc holds a descriptor of the sandbox's own /proc
	FlagAsPID1               // init clones the tool into the namespaces, where it is pid 1, and stays outside
	FlagBorn                 // GateBorn is waited at
	FlagBuilt                // GateBuilt is waited at
	FlagTell                 // MsgEnded is sent
	FlagSession              // init starts no tool: it serves the session's socket
	FlagCommand              // a command of a session: the stage hands it to that session's init
	FlagShares               // with FlagCommand: the ops, their steps and the supervisor's rules are those of the session's own program
	FlagNetApart             // with FlagNet: before init's ops, and in a user namespace of another user's
	FlagBatch                // with FlagCommand: the warden may call sched_getscheduler(2) and sched_setscheduler(2)
	FlagApart                // the tool, and init, leave the harness's session
	FlagReady                // with FlagSession: a warden and a tool stand ready for commands whose tool has the ops of the session's own program
	FlagLast                 // with FlagCommand: none stands ready for another
	FlagOwnTTY               // a terminal controls the tool only if it is one of its descriptors
)

// Gates.
const (
	GateBorn  = iota // nothing has been built
	GateBuilt        // all but the filters is there
)

// Registers with a fixed meaning.
const (
	RegNone    = -1
	RegOldRoot = 0 // O_PATH descriptor of the harness's root directory
	RegRoot    = 1 // mount descriptor of the tool's root
	RegScratch = 2 // mount descriptor of the private tmpfs
	RegProc    = 3 // O_PATH descriptor of the sandbox's /proc
	RegRuleset = 4
	RegKeyring = 5 // the serial number of the tool's session keyring
	RegMounts  = 6 // what the harness keeps of the mounts until all are dead: the private tmpfs, or the namespace
	RegDialer  = 7 // init's end of the socket on which the harness asks for sockets
	RegFree    = 8 // from here on: temporaries
	RegGiven   = 48
	MaxGiven   = MaxRegisters - RegGiven
)

// Kinds of message on the control socket. Each is a Message, which may be
// followed by data.
const (
	MsgInit      = 1 + iota // Value: init's pid as the stage sees it; of a warden its own pid inside, negated; carries a pidfd of it
	MsgStarted              // the tool was executed inside its walls; Value: RegKeyring; Step: Warm or another; carries RegMounts, if there is one
	MsgFailed               // Step, Errno: nothing ran, or was stopped before the tool; what was found there may follow
	MsgEvidence             // Value: length of the data that follows; carries the table of denials, if there is a supervisor
	MsgDeadline             // the stage ended the sandbox at its deadline
	MsgProbe                // the self-checks of a probe
	MsgGate                 // Value: the gate; one byte opens it
	MsgPassed               // Value: a slot; carries the descriptor that belongs in it
	MsgKeeper               // carries a pidfd of the keeper
	MsgStuck                // Value: the pid of a process that was killed and does not end
	MsgLost                 // Value: LostInit, LostKeeper or LostWarden, which has ended before the tool; Errno: init's or the warden's wait status
	MsgQuestions            // carries the socket on which the supervisor asks the harness; before MsgEvidence
	MsgEnded                // the run is over; Value: the tool's wait status; a struct rusage of all processes follows
	MsgToolEnded            // a command of a session: as MsgEnded, of the tool alone; what it has left goes on
	MsgGone                 // a command of a session: no process of it is left; the last message
)

// Which process became the tool.
const (
	Cold       = iota // one that was cloned for it: none stood ready
	Warm              // one that stood ready
	ColdKilled        // one that was cloned for it: what stood ready was killed or stopped
)

// The sandbox's own processes that MsgLost tells of.
const (
	LostInit = 1 + iota
	LostKeeper
	LostWarden
)

// Message is one record on the control socket.
type Message struct {
	Kind  uint32
	Step  uint32
	Where uint32
	Errno int32
	Value int64
	Check [MaxSelfChecks]int32 // errno+1 of each self-check that ran; 0: did not run
}

// DialRequest asks init for an unconnected TCP socket. The answer to it carries
// the socket, or the errno for which it could not be made; Number is the request's.
type DialRequest struct {
	Family uint32 // AF_INET or AF_INET6
	Number uint32
	Errno  int32 // in the answer
}

// What a session holds at most.
const (
	MaxCommands = 256 // that have processes
	// MaxPassed is how many descriptors one message carries (SCM_MAX_FD of include/net/scm.h), and PassedFirst how
	// many of a command's come before the tool's: its program, its control socket, its stage's socket.
	MaxPassed   = 253
	PassedFirst = 3
)

// Request is a message on a session's socket, to init.
type Request struct {
	Kind     uint32
	Umask    uint32 // the tool's
	Leads    uint32 // 1: the command's stage leads a process group: what signals it, signals the tool's group
	Terminal uint32 // 1 + the descriptor that becomes the tool's controlling terminal; 0: none does
	CwdErrno uint32
	Last     uint32     // 1: the session ends with this command
	Mask     uint64     // the tool's signal mask
	Gaps     [4]uint64  // bit n: the tool's descriptor n is closed
	Cwd      [4104]byte // the message ends with its zero
}

// Kinds of Request.
const (
	RequestNone    = iota // is there an init?
	RequestCommand        // carries the program, the control socket, the stage's socket and the tool's descriptors
	RequestEnd            // end the session
	RequestPause          // take no commands, and let wardens be stopped; init answers this and the next two with a byte each
	RequestStop           // stop all at once, as the first process of a pid namespace
	RequestResume         // take commands again
)

// StatusRecord goes from init to the stage.
type StatusRecord struct {
	Kind   uint32
	Status uint32 // as wait4 gives it
	Used   Used   // with StatusEnded and FlagTell
}

// Used is what the processes that init has waited for have used, in microseconds and KiB as getrusage gives it.
type Used struct{ User, System, MaxRSS int64 }

// Kinds of StatusRecord.
const (
	StatusEnded     = 1 + iota // the tool ended; Status is its wait status
	StatusStopped              // the tool was stopped by a signal
	StatusContinued            // and goes on
	StatusAsked                // one byte is to follow the numbers of the signals that the stage has had
	StatusFailed               // the tool was never executed; Status is the stage's exit code
)
