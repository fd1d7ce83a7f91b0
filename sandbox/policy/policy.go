package policy

import (
	"context"
	"io/fs"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A Bound is one of the things a sandbox bounds: a word such as "files".
type Bound = plan.Bound

// The bounds. Each is held by two independent mechanisms where the kernel has
// them.
const (
	BoundFiles       = plan.Files       // what can be read, written, or seen
	BoundNetwork     = plan.Network     // what can be connected to
	BoundProcesses   = plan.Processes   // which processes can be seen and signalled, and that none outlives the run
	BoundSyscalls    = plan.Syscalls    // which system calls the kernel takes
	BoundPrivileges  = plan.Privileges  // that no right is held or gained
	BoundResources   = plan.Resources   // rlimits
	BoundEnvironment = plan.Environment // which variables the tool gets
	BoundTime        = plan.Time        // how long it may run
)

// A Policy says what a tool may touch. It is plain data: the zero value allows
// nothing, and whatever widens it is written down in a field. Once given to
// sandbox.New it is copied; later changes have no effect.
//
// The presets sandbox.ReadOnly, sandbox.Workspace, sandbox.WorkspaceNet and sandbox.Unconfined return
// policies to start from.
type Policy struct {
	Files   Files
	Network Network
	Env     Env
	Limits  Limits

	// Dir is where a command starts whose own Dir is empty, if the policy does not show the
	// harness's working directory: the workspace. It grants nothing. In a Root it is a path inside,
	// tried after the harness's directory and before HOME. "": the harness's directory, or an
	// error if that is not shown.
	Dir string

	// Root gives the tool's root explicitly, entry by entry. Nil: Files decides, of
	// which with a Root only Protect and HideNames count.
	Root *rootfs.Layout

	// Nested lets the tool make sandboxes in this one: bubblewrap, Chromium with its sandbox on, "unshare -Ur", Holdfast. It may make
	// user, mount, pid, ipc, uts and network namespaces, 128 of each kind, and mount in them; cgroup namespaces it may not ("bwrap
	// --unshare-all" asks for one). What the kernel then holds alone, and what is weaker, the report's notes say
	// (docs/security.md). It is for commands of an ordinary user, on Linux, with namespaces, and goes only with a policy
	// under which names need no protection: directory trees in CopyOnWrite or Private instead of Write, Tmp and Home, or
	// Protect.Off; nothing hidden, private or read-only inside a tree that can be changed; no HideNames, no Watch, no sessions. A Root has
	// Nest instead. A profile in Syscalls has to allow what sandboxes are built by. False: no user namespace can be made.
	Nested bool

	// Syscalls is the system call profile. Zero: seccomp.Default(). It has to allow
	// execve, with which the tool starts, and must not use seccomp.Notify, since a policy
	// cannot name a supervisor. Rules that other bounds need win over it. One that allows
	// io_uring lets a tool make vsock sockets, which no network namespace holds.
	Syscalls seccomp.Filter
	// Programs are filters that were compiled elsewhere. They are loaded in order
	// after the profile, by prctl(2): the profile, and all of them but the last, have to allow that.
	Programs []seccomp.Program

	// May lists bounds that may be missing, or weaker, on a host that cannot hold
	// them. Without it such a host is a sandbox.UnsupportedError; with it the tool runs
	// and the report says what is missing.
	May []Bound

	// Open lists bounds that are not wanted at all, on any host. The report shows
	// them as open. Files and Processes share mechanisms: with both open, no namespace
	// is made. A bound that is open and
	// that HideNames, Protect.Add, Syscalls, Rlimits or WallClock bounds is an error.
	Open []Bound

	// Observe is told what happens in each run: that it has started, what it was denied, what Network.Decide and Files.Decide were asked and
	// have answered, and how it ended. One goroutine of each run calls it, in order, and none calls it after Wait has
	// returned; of commands that run at the same time the calls come at the same time. It holds nothing up: a thousand events
	// wait for it, more are counted as lost, and a run that has ended waits 30 seconds for it at most. A panic of it is
	// ignored. Connections are told to Network.Observe. Nil: nothing is told, which costs nothing.
	Observe func(e Event) `json:"-"`

	// Notes say from which text the policy was made, and how exactly. They have no
	// effect; each run's sandbox.Report repeats them.
	Notes []Note
}

// Files says which files exist for the tool. All paths are absolute. Symbolic
// links in them are resolved when the sandbox is made; the links themselves
// appear inside, so that both names work. A path that does not exist is an
// error: a rule that cannot hold must not be ignored.
//
// Where paths nest, the deepest rule decides.
type Files struct {
	// Read lists files and directory trees to read and execute from.
	Read []string
	// Write lists files and directory trees that may also be changed.
	Write []string
	// Hide lists files and directory trees, inside what Read and Write show, that
	// must not be readable. Where nothing is shown there is nothing to hide, and
	// the rule is left out. A path that does not exist is allowed here when what
	// lies around it cannot be written; it is not hidden if the host makes it later. One that is
	// gone when a command or a session starts needs no cover, unless its directory was moved: then nothing starts.
	Hide []string
	// HideNames lists file names, such as ".env" and ".env.*", in the notation of
	// [ProtectedNames], that cannot be opened anywhere below Write, at any depth,
	// whether or not they exist yet. What a symbolic link of such a name leads to is hidden, too, if
	// the link is there when the sandbox is made: in the top of a writable directory, in repositories one level below, and in the home.
	// A file that has an execute permission can still be executed, and a debugger reads what the program maps: take that permission away.
	// With a hidden name, or a Hide inside Write, the tool gives no directory of the user's more permissions for group and others.
	HideNames []string
	// Private lists directories that are empty and writable at each start and gone
	// afterwards, such as /tmp. They take memory; see PrivateBytes. One that does
	// not exist on the host is made, except inside what the policy shows of the host.
	Private []string
	// MayShare lists those of Private, such as /tmp, that the tool has as they are outside where no directory can be private, as in
	// most containers: it reads and writes there what its user can, other programs' files among it, what it writes stays, and Protect and
	// HideNames hold there as in Write. HOME and TMPDIR stay the run's own. Not listed, such a directory is closed to the tool there. See [Policy.InContainer].
	MayShare []string
	// Tmp is a directory of the caller's that the tool may write to and that its TMPDIR names: for harnesses that exchange files with
	// what they start through os.TempDir, such as a status or a captured output. It has the same path outside; a harness sets its own TMPDIR to
	// it. It is kept after the run, and other sandboxes may have it at the same time. Protect and HideNames hold in it as in Write. The /tmp of the
	// presets stays private to the run. What the tool leaves in it can be a symbolic link: read it by os.Root or with
	// O_NOFOLLOW. It has to belong to the harness's user, to be writable to no other, and to be none that programs outside take their
	// settings or programs from; neither it nor Home may overlap with Write or CopyOnWrite. "": TMPDIR is what Env says, /tmp in the presets.
	Tmp string
	// Home is a directory that is the tool's HOME and is kept from run to run, so that what is installed by "pip install --user",
	// settings and caches last. What goes for Tmp goes for it; several sandboxes may have it at once, and are not kept apart in it.
	// The files of Make that lie in the policy's HOME are put into it once, at the first run; those that are there stay.
	// Names are protected in it, .bashrc and .gitconfig among them, so that nothing outside obeys what a tool
	// has written even if it runs with that HOME; for git, GIT_CONFIG_GLOBAL names .sandbox-gitconfig in it, so that "git config --global" works
	// inside. XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and XDG_CACHE_HOME, where the harness has them in its own HOME, are in Home too; what
	// other variables name stays. Caches that the presets copy are in the harness's HOME: a tool
	// finds them there only by its variable, such as GOMODCACHE. "": HOME is what Env says, a private directory in the presets.
	Home string
	// CopyOnWrite lists directory trees that can be changed inside, while the host
	// keeps what it has. On a host without overlayfs in user namespaces each is an
	// empty private directory, or, inside what Read shows, can be read alone.
	CopyOnWrite []string
	// Make lists small files that exist inside only. Each must lie in a Private
	// directory or where nothing of the host is shown.
	Make []File
	// Worktrees lists work trees of git, inside what Read or Write show, whose repository lies elsewhere: linked
	// worktrees, submodules, and directories somewhere below a work tree's top. The repository (a worktree's common directory, a submodule's own) is granted as its work
	// tree is, to be read or written, when the sandbox is made: if the work tree's .git file names it and it names that
	// work tree in return, has the shape of a git directory, belongs to the harness's user or the work tree's
	// owner, does not lie around the work tree, and .git is protected; and if the deepest rule around it is not one of Hide, but for those by which the
	// presets hide a directory such as /home around the work tree. Each run's report has a note
	// that names it, or says why it was not granted. Of a repository that can be written, the index, HEAD and the state of the main
	// work tree stay closed, and so do the directories of the worktrees that the policy does not let be written;
	// branches, tags and objects are shared: the user's next command there meets what the tool has committed. A work tree
	// with a --separate-git-dir has no such proof: name that directory in Write. Of a directory below a work tree's top
	// the whole work tree around it is shown to read, since git status would take every other file for
	// deleted: what git ignores there, too. It is not shown, and nothing granted, if it
	// belongs to another user, could not be a preset's workspace (a home that is a repository), or HideNames
	// names something, which holds below Write alone. Nothing is granted on macOS.
	Worktrees []string
	// Found has the canonical paths of those of Read, Write and CopyOnWrite that lay, when a preset listed them, where a tool
	// of another sandbox can have put a symbolic link since. New refuses one that leads to another path. It grants nothing.
	Found map[string]string
	// Watch has the report list the opens, executions and looks at metadata that fail because the policy does not show a path, or
	// shows it to be read alone: "not there" then has a reason. It bounds nothing and widens nothing, and a tool can hide from it.
	// It is for finding out what a tool needs (Report.Suggest): each of these calls takes some 10 microseconds more
	// (docs/denials.md). False: only what the supervisor refuses is listed. On macOS it does nothing.
	Watch bool
	// Decide is asked about an open that fails because the policy does not show a file of the host's, or shows it to be read alone: a
	// yes gives the tool a descriptor, and its open succeeds. It takes Watch, and has the limits that [FileRequest] tells. Nil: no such open
	// succeeds, which costs nothing. It is called from several goroutines, at most 32 at one time, and never for two questions about one
	// file. Equal questions are one; an answer lasts as [Verdict] For says, for whatever lies at the path then. The tool's thread waits in
	// its open meanwhile, which no signal but a fatal one ends. What is allowed is told to Observe and is a note of the report.
	Decide func(ctx context.Context, r FileRequest) Verdict `json:"-"`
	// Patience is how long Decide may take. An answer that has not come by then is a denial, of that one question. Zero: 30 seconds.
	Patience time.Duration
	// PrivateBytes limits what Private directories and copies, HOME, /tmp and /dev/shm among them, can hold together in one sandbox: bytes, and
	// a file for each 2 KiB, of 1,024 at the least. They take memory until the sandbox ends: sandboxes that run at one time need room for all.
	// Zero: 12 % of the machine's memory.
	PrivateBytes uint64

	// Protect says which names below Write stay unwritable, in every directory that the tool has not made, and
	// whether or not they exist. The zero value protects [ProtectedNames].
	Protect Protect
}

// A File is a small file that exists inside the sandbox only.
type File struct {
	Path string
	Data string
	Mode fs.FileMode // zero: 0444
}

// Protect changes the list of protected names. The zero value is the safe one.
type Protect struct {
	Add    []string // more names, in the notation of ProtectedNames; what lies below them is protected too
	Except []string // names of [ProtectedNames] that may be written after all
	Off    bool     // protect nothing

	// Everywhere protects the names in every directory, and not only in those that the tool has not made: a clone of a
	// repository that has .vscode or .husky, say, then checks out nothing. False: in a directory that a tool of this [sandbox.Sandbox] has made, such as
	// a clone, they are free, and the report names them. Git directories are protected in any case.
	Everywhere bool

	// NoNewRepositories refuses what makes a directory a git directory, and .git files: git init, clone, worktree add
	// and a submodule's first update fail inside. Repositories that are there work.
	NoNewRepositories bool

	// BuildFiles leaves those of [ProtectedNames] open that belong to a project's build, and that the tools in its hands may have to
	// write: .cargo/config.toml, .yarnrc.yml, lefthook.yml and their kin (docs/protected-names.md). The user's own cargo, yarn or
	// pre-commit will then run what a tool has written there. False: they are protected.
	BuildFiles bool
}

// Env says which variables of the harness's environment the tool gets. A command whose
// Env is nil has what Pass and Set say. In an Env of the command's own, such as
// append(os.Environ(), "X=1"), each variable that is as in the harness's environment, by
// name and value, or in neither of the two, is what it would be for a nil Env: it
// passes, has Set's value, or stays out; so do the variables of the network's proxies.
// What the caller has added or changed passes as it is, and what the caller has
// removed stays removed. The report counts what was withheld, and calls the
// environment weaker if a variable of the caller's own looks like a secret ([HoldsSecret]).
//
// Where either of the two lists has the secret of one of [Network]'s
// Credentials, the tool has its placeholder.
type Env struct {
	// Pass lists names, or patterns of path.Match such as "LC_*" and "*". A variable
	// that looks like a secret or changes how programs load (see [SecretNames])
	// passes only when its name is listed literally; so does one that names a proxy
	// (HTTP_PROXY and all others that end in _PROXY) where the network is bounded, from which the harness's proxies are not reached.
	Pass []string
	// Set lists variables with the values they have inside. They win over Pass. Name
	// and value together are shorter than 128 KiB.
	Set map[string]string
	// AsGiven lets a command's own Env pass as it is, the harness's variables and
	// secrets among it; nothing is added, not the proxies' variables either (see
	// sandbox.Cmd.NetworkEnviron). False: it is filtered.
	AsGiven bool
}

// Limits bounds what the tool can consume. The zero value is rlimit.Defaults()
// and no deadline.
type Limits struct {
	// Rlimits are the resource limits of each process, over rlimit.Defaults().
	// NoFile is at least 16; a hard limit above the harness's own is an error.
	Rlimits rlimit.Limits
	// WallClock is how long the run may take. Then everything inside is killed,
	// and Wait's error wraps sandbox.ErrDeadline. Zero: no deadline.
	WallClock time.Duration
}
