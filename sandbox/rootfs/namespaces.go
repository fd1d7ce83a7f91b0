package rootfs

import (
	"os"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

// Namespaces says which namespaces the tool shares with the harness or with another
// process. The zero value shares none. Which network the tool has, the policy's
// Network says.
type Namespaces struct {
	ShareUser   bool // no new user namespace, which takes root
	SharePID    bool // the harness's processes are visible, or those of PID
	ShareIPC    bool
	ShareUTS    bool
	ShareCgroup bool

	// User is a user namespace to join instead of making one, such as an open
	// /proc/PID/ns/user. It must be a descendant of the harness's.
	User *os.File
	// ThenUser is a user namespace to enter when the root has been built.
	ThenUser *os.File
	// PID is a pid namespace to join; without SharePID the tool's new one lies in it.
	PID *os.File

	// As sets the uid and gid inside. Nil: those outside.
	As *IDs
	// OneLevel leaves out the second user namespace, which takes away from
	// capabilities that the tool keeps the power over its own mounts. A [Dev] needs
	// the second one, unless As is user 0.
	OneLevel bool
	// MappedOutside leaves the mapping of ids to the command's Born hook.
	MappedOutside bool
	// NoUsers keeps the tool from making user namespaces, and checks that none can
	// be made. CheckNoUsers only checks.
	NoUsers, CheckNoUsers bool

	// Hostname is the host's name inside. "": the harness's.
	Hostname string
	// AsPID1 makes the tool the first process of its pid namespace. Orphans are not reaped
	// there. It cannot be combined with protected names or Locks.
	AsPID1 bool
	// Joinable leaves the namespaces open for this user's other processes to join,
	// by way of the sandbox's first process. What keeps the tool from tracing that
	// process is then a capability which it keeps and the tool lacks, unless the
	// policy lets it keep CAP_SYS_PTRACE.
	Joinable bool
}

// IDs are a user and a group.
type IDs = plan.IDs

// Privileges says what rights the tool keeps. The zero value is none. Setuid and file capabilities give nothing, whatever
// this says: no_new_privs is always set.
type Privileges struct {
	// Capabilities are kept over the namespaces that the tool is in, and by what it
	// executes.
	Capabilities []Capability
	// All leaves the capability sets as the harness has them, in the harness's user
	// namespace, or full in a new one.
	All bool
}
