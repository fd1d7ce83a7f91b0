// Package supervisor keeps names such as .git/hooks and .bashrc from being made, written, renamed, linked, removed or given
// another mode below a directory that a tool may write: at every depth, whether or not they exist, and without a file on
// the disk that stands for them. Mounts and Landlock protect what is there; this protects names.
//
//	blob, err := rules.Encode()                // ordinary Go, in the harness
//	prog, err := supervisor.FilterOf("amd64", &rules) // loaded by the tool, after its main filter
//	supervisor.Begin(&s, blob, own)                 // before the fork, in the stage; own: the path of the run's own directory, or nil
//	supervisor.Prepare(&s, procRoot, listener)      // from here on in the forked child: the sandbox's init
//	for poll(listener) { supervisor.Serve(&s); supervisor.Retry(&s) }
//
// # One call
//
// The tool's openat(2) with O_CREAT stops in the kernel, and its arguments come to init as a notification
// (seccomp_unotify(2)). Serve then
//
//  1. checks that the caller shares init's mount namespace (memory_linux.go);
//  2. decodes the call and copies its path from the caller's memory, once: what is checked is what is done
//     (decode_linux.go, memory_linux.go);
//  3. finds the directory and the last name, from the caller's own root, working directory or descriptor, with /proc/self
//     meaning the caller (find_linux.go, and walk_linux.go where a link is on the way);
//  4. asks the kernel for that directory's path and compares it, with the name, with the rules (match.go);
//  5. asks the kernel whether the caller still waits, so that its process number was not another's by then;
//  6. makes the very call itself, on the directory's descriptor and the one name, with the caller's umask, and answers
//     with the result, or a descriptor put into the caller's table (open_, name_, rename_, mode_, bind_linux.go).
//
// Each object of the caller's (a descriptor's number, the working directory, a path, an address in memory) is taken
// once, as an O_PATH descriptor or a copy, and everything after goes through that: a second thread may have made it
// another one by a second look. TestNoSecondLookAtTheTarget holds the source to it.
//
// No call with a path or an address that a bound depends on is answered by SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel would read it again, and a
// second thread may have changed it. One supervisor, one call at a time, and every call that changes a name goes through it: so
// between steps 3 and 6 no process of the sandbox can turn the directory into another, whatever its threads do.
//
// # Rules, and why each is as it is
//
//   - The kernel's own path of the directory decides, never the tool's spelling: links, "..", //, /proc/self/root
//     and descriptors lead to the same answer.
//   - That path has to be the only one (elsewhere_linux.go), since Landlock grants what lies below a directory by whatever path it is reached. A
//     directory or plain file of another mount namespace, which another sandbox has sent as a descriptor, is refused unless its path leads to it here, too, and is changed on this sandbox's mounts; so is a file whose descriptor
//     was opened by a name that is gone, if it has another, which the kernel does not tell. What has no name at all is judged by the one that it had. Where the sandbox
//     has no mounts (Rules.Fence), the host can have a directory at two paths, or another process rename it: nothing is changed at a path that no rule lets the tool
//     change, and with hidden names nothing opened there that lies below the directory of a root.
//   - A protected name has EACCES for an answer; but EEXIST or ENOENT where that is the truth, since `mkdir -p` and `rm -f`
//     rely on it.
//   - A name above a protected one (.cargo) takes no renamed directory and no link: what lies in that
//     would be protected no sooner than it is obeyed. Nor may such a directory be renamed away. The same holds above a hidden name: what has it would be read elsewhere.
//   - A protected file gets no second name, for its content could be changed by that.
//   - O_RDONLY opens are not stopped, unless Rules.Hidden is used; then all opens but O_PATH are, and a hidden name cannot
//     be opened, linked or renamed. Its metadata stay visible.
//   - A file gets no setuid and no setgid bit, by whatever call: it keeps the rest of the mode that was asked for.
//   - Owners, times and locks are left alone: they make nothing run. But with Rules.Fence what is protected, hidden or a git directory keeps its owner and group. Of extended attributes only user.* can be set and removed,
//     and not on protected names or in git directories; others are EOPNOTSUPP, since an ACL is a mode (attribute_linux.go).
//   - openat2(2) is answered by ENOSYS, on which every portable caller falls back; io_uring and open_by_handle_at(2), ways
//     around the filter, are refused. prctl(PR_SET_DUMPABLE, 0) says yes and does nothing: the memory of
//     a process that hides it could not be read, and so nothing could be done for it.
//   - The supervisor's own files under /proc are refused: it may do to itself what the tool may not. So are those of other commands'
//     processes, where each command of a session has a supervisor (KeepApart): their Landlock layers keep the tool from them, not the supervisor.
//
// # What the tool has made
//
// Protected names of kind Whole, and what lies below them, are held in directories that the tool has not made, and free in those that it has: a clone
// checks out. mkdir(2) is carried out here, so it is known which those are. Each is put into the record (made.go, made_linux.go), memory
// that the harness makes for a Sandbox, that init maps, and that all supervisors of that Sandbox's commands and sessions share. They see each other's
// entries at once; nothing is handed back at the end. The tool has neither the memory nor its file.
//
//		mkdir ----> afterMade: device, inode, birth ----> record <---- isFree: is each directory from the name's base down to its own in it?
//		rmdir, rename, symlink ----> leaving, arriving, mayLead: names that the user's directories had ----> record
//
//	  - It holds every directory, and not the roots of trees alone: what the user makes or moves into such a tree is not in it, so it is held, and no
//	    rename has to be followed. A name of several components (.cargo/config.toml) has its base where the first begins. The top of a root is held, whoever made it, and
//	    all of a root that is a HOME or TMPDIR outside (Root.Home).
//	  - A directory is the one that was made if device, inode and birth time are. Without a birth time nothing is recorded. Just made,
//	    it was born after the call began and written when it was born, else another sandbox has put an older one in its place.
//	  - Only a name that is protected leads to a look at the record, and each mkdir, rmdir and rename.
//	  - What has been the user's stays the user's to whoever comes back to its path. When a directory or link that the tool has not made leaves its name, by
//	    rename(2) or removal, the record keeps that name. A directory that is made there, or below, counts as not made. Another can be
//	    renamed to it only if nothing in it is free: itself, or one made so; else EXDEV, on which mv copies. A link stands there only if its text leads, by directories alone,
//	    to what the tool has not made; a target that is absent, or a file, becomes such a name.
//	    A look through the tree, which would find it without protected names and enter its directories as not made, would not do: another session's
//	    supervisor may have found a name free in it and make that after the look, however late, or be killed before it could look again. Each maker of a free name would have to
//	    hold the record's lock from its judgement to its act.
//	  - It has room for 65,536 directories. More count as not made. Where one of the user's names does not fit, as while
//	    the tool removes and remakes a very large tree of the user's, every name counts as kept from then on: nothing new is free, and directories are not renamed (EXDEV).
//	  - Git directories, names of Rules.Paths, hidden names, and those of kind Ever (.holdfast-*, what the user's configuration has git run in every work tree) are held as before.
//	  - The table of denials has the free names that a run has made or written, NameRoom of them, for the report.
//
// # Git directories
//
// A git directory is one by its shape, whatever it is called: it holds HEAD that is no directory or socket, and objects and refs or a
// commondir; one called .git always is. The worktrees and modules of one never are. Each call looks anew, from the name's directory up to the root, by one fstatat a level (gitshape_linux.go): no
// table is kept, and what another sandbox or the user's git makes counts at once. A plain file is opened for writing first and looked at then, and
// truncated after that: an open by itself changes nothing. Inside one the allow-list gitLines counts
// (gitdir.go), which gives each path a class and its reason; a path that no line names cannot be made, nor one that a file system which folds
// case takes for another that is closed (gitfold.go).
//
//   - The call that would make a directory a git directory is carried out only if all that lies there conforms to
//     the list (conform_linux.go), and its configuration becomes a private copy. The call by which it would cease to be
//     one, too: its hooks would be open to the tool. So every git directory in a root is held from its first moment.
//     A socket, which git takes for refs or objects, makes none (bind_linux.go).
//   - With Rules.NoNewGit that call is refused, and so are a directory and a file named .git.
//   - A configuration is written by git as config.lock and renamed. The supervisor puts a checked copy in its place,
//     which no process has open, under a name that no supervisor opens until it is there: harmless keys may
//     change, all else has to be as it was (package gittext). A submodule's core.worktree is taken out; git needs it not.
//     The mode is left to the tool, because git init flips it, but for what lets others write. It may be removed when it holds harmless keys alone.
//   - .gitmodules, in the work tree, is judged so, too, by another list (package gittext). git checkout writes it by an open, as libgit2 does
//     a new configuration: what is written comes as a deferred write (deferred_linux.go), and appears when it is judged harmless.
//   - An index is read by the size of objects' names that the configuration says (package gittext), in the tool's file where the kernel grants
//     a lease on it, else in a copy. It brings no protected name that the index it replaces did not have, unless with what the work tree
//     has there (gitentries_linux.go).
//     A file that is opened by a descriptor, or whose open was put off, is judged by its path once more when it is open, the source of a link
//     when it has the link, and an index when it has its name: another sandbox may have renamed it since (stillMay, standsAlone).
//   - A lock is opened only with O_CREAT|O_EXCL, and renamed or removed only by the sandbox that made it (lock_linux.go): the user's
//     own git may be holding it.
//   - Texts by which git runs, deletes or writes something are checked when they are renamed to their name, or come as a deferred write: a
//     rebase's todo (without exec), its strategy and options, which are git's own alone (text_linux.go, gittext/strategy.go). MERGE_RR keeps its entries or loses them: git rerere copies
//     the files that they name. A file of a merge that the USER's git has begun may have become a link by then; that copy remains. A .git file, and a worktree's gitdir, is written with the
//     kernel's path of what was judged; a commondir only as "../.." (deferred_linux.go).
//   - No call lets every user of the machine write in a git directory, and none lets the group write the directory itself, a configuration or
//     another text of it where the group cannot yet: other users would write hooks (mode_linux.go). A replaced file's copy has no more than
//     that file's bits and 0644. A umask of the tool's can still let the group write a git directory that the tool makes.
//   - A .git file names what no later call can make another place, in this run or a later one (gitway_linux.go): a directory in the .git of
//     the root's top, by its absolute path; in the .git of a directory around it, by a relative one; or a git directory in, or beside, its own
//     directory. No link comes to a name through which such a file leads, and no directory goes where its .git file, or one below it,
//     would lead out of the root; one of more than 65,536 entries does not move up (EXDEV, on which mv copies). One that its owner has made unreadable may
//     lead anywhere.
//   - No symbolic link lies in one, but for the one by which git init probes; no directory comes into one from outside, but a
//     git directory below modules (git submodule absorbgitdirs). .git itself is not renamed elsewhere.
//   - After a file is made, and after any other name is, the shape is looked at once more before the tool learns of it: another
//     sandbox, or the user's git, may have come between.
//   - Removing is free, but for hooks that are active, attributes, a configuration that is not harmless, and others' locks.
//   - HEAD, index, refs, objects and logs are the tool's: it can break a repository, and say anything in its history.
//
// # Connections
//
// Where the sandbox has no network namespace, Rules.Connects are the only addresses that the tool's TCP sockets can connect to: those of
// the harness's proxies; and servers of the tool's own. The socket(2) of TCP, UNIX and netlink stops here, too: the supervisor makes the socket, gives it to the tool and keeps a descriptor
// until it is connected or listens, or one of netlink, which is NETLINK_ROUTE's alone, is bound (socket_linux.go). connect(2) is carried out as the calls above are, with an address that was copied once, on
// that descriptor, which it finds by the socket's inode; other sockets are refused (connect_linux.go). That makes TCP go nowhere else only together with a profile
// that leaves the tool no other sockets, and no other call that connects: see Streams in package compile. Setting a source
// route or a device is refused; setting SO_SNDTIMEO or SO_LINGER says yes and does nothing; a blocking connect to a listener
// that accepts no connection fails after 200 ms with ETIMEDOUT, during which the supervisor serves no other call. Streams
// refuses userfaultfd(2) too, by which a thread could stop in the middle of sending, with the socket locked, and a
// connect on that socket would wait for it.
//
// bind(2) and listen(2) stop here as well (bind_linux.go). A socket of TCP is bound to an address of the supervisor's own in the loopback network, and
// connect(2) leads there from 127.0.0.1 and its like, if a socket of the tool's listens at the port and no other can (ports_linux.go). listen(2) without bind(2) is refused.
// Of a UNIX socket with a path the supervisor keeps the file that bind(2) has made, by a descriptor of O_PATH. A path
// can be connected to if it leads to such a file, however it is spelled: a socket that another process has bound is none, wherever it lies, and the
// connection is made by that descriptor, so that nothing on the way can be changed in between. An abstract name, in bind and in connect, has the supervisor's own
// name put before it. The commands of a session share all this (shared_linux.go). accept(2) is the kernel's: what listens is the tool's own.
//
// # Devices
//
// Where the sandbox has no mounts, Rules.Terminals has the supervisor open terminals for the tool: it makes them in the host's devpts, keeps a
// descriptor of O_PATH of each, and opens those alone (devices_linux.go). The tool is in one more Landlock layer, which grants it none. With
// Rules.Shared a path below /dev/shm is one in the run's own directory.
//
// # Hosts that refuse calls into other processes
//
// Container engines refuse process_vm_readv(2) and pidfd_getfd(2) without CAP_SYS_PTRACE; package host finds out which. With Rules.MemFile the
// tool's memory is read by /proc/PID/mem, opened once a call, for which the kernel asks for the same rights over the tool
// (PTRACE_MODE_ATTACH, ptrace(2)). With Rules.FreeBinds bind(2) is the kernel's, and Landlock lets no socket be made in the roots.
//
// # Tracing
//
// ptrace(2) stops here when it asks for PTRACE_O_TRACEEXIT, and goes on for one process at a time: two that trace each other
// with it could never be killed. trace_linux.go has the proof. A second strace gets EINVAL while one runs.
//
// # Denials
//
// Each refusal has a Reason (denial.go), and is written into a table in memory that init shares with the harness: which deed, the
// kernel's paths, the process and its command line (record_linux.go). Equal denials are one record with a count; the first
// DenialRoom stay, the others are counted. So a flood costs the time of a comparison each, and no memory. The table is made
// once the tool has been executed, and its descriptor goes to the harness alone, which reads it at any time (ReadDenials), also after init's
// death, and finds the rule again (CauseOf); package runner puts it into words. A name that is said to be there already, or not to be there,
// because that is the truth, is no denial; nor is what the kernel refuses by itself, or the filter without the supervisor. Two denials whose
// paths are longer than DenialPathRoom and differ behind that may count as one.
//
// # Watching
//
// With Rules.Watch, executions, looks at metadata, changes of directory and all opens stop here, too (watch_linux.go). Such a call, if the
// filter without Watch would let it go on, is tried without an effect, recorded if it fails with ENOENT, EACCES or EROFS, and then goes on in
// the kernel (SECCOMP_USER_NOTIF_FLAG_CONTINUE). That is sound because no rule depends on these stops: mounts and Landlock hold what can be
// reached, whatever the path has become meanwhile, and the record is advisory. TestOnlyWatchedCallsGoOn compares the two
// filters for every call and flag. Calls that are served anyway are served as without Watch, and recorded when they fail.
//
//   - The tool's own execve(2) carries ExecMark in an argument that the kernel does not read, and is not stopped: init is suspended by
//     vfork until then, and would never answer. Fork instead of vfork would copy init's page tables at each start. A tool that uses the
//     mark is not seen when it executes something; it could as well hide in the next item.
//   - Records lie in a ring behind the table of denials (watch.go), WatchRoom of them. The harness takes them out every few
//     milliseconds, and drops those that are absent outside, too, which init cannot see: it has no descriptor of the host's root, so that none
//     can be stolen from it. A tool that is faster than the harness loses records, which are counted, and never waits. Denials are in
//     the other table, which no flood of looks reaches.
//   - A path that leads nowhere is recorded as the tool spelled it, behind the kernel's path of the directory it begins at.
//   - Where Landlock alone holds the files (Rules.Bare), access(2) does not show what it refuses: a plain file or directory is opened for a
//     moment, and a name is made out to be creatable by the roots.
//   - Calls of processes in another mount namespace, or with memory that cannot be read, go on unrecorded.
//
// # Asking
//
// With Rules.Patience an open that Watch sees fail is a question to the harness, over a socket that init and the harness have for this
// (ask_linux.go): the record, the flags, the errno. The call stays unanswered meanwhile, among askRoom others, and init serves the rest. An answer with
// a descriptor is put into the caller's table; one without, a closed socket, or the end of Patience, and the call goes on as without the
// question: by itself if it was only watched, else with its errno. What is refused by a rule is not asked about. Which file it is, and whether it
// may be given, the harness decides (package runner): init sees nothing of the host.
//
// # Limits
//
//   - A hard link made before the run to a protected file is a second name that is not protected. Names outside the roots are
//     not looked at, but for Rules.Paths.
//   - The serving process must be single-threaded, not be filtered itself, share the tool's user, mount
//     namespace and root, and be in the same Landlock domain, but for terminals and ports: what the tool may do by these calls is what the
//     supervisor may do. A process of the sandbox that confines itself further (Landlock, a seccomp rule on the arguments of open) is not
//     held to that in the calls served here. In another mount namespace every served call is EACCES.
//   - The record lasts as long as its Sandbox: a name that one Sandbox's tool takes from the user's directory is an ordinary one to the next, or to another at the same time. A
//     directory of the user's in a tree of the tool's loses its name with that tree: what is made at its path, when the tree has been renamed or removed, is the tool's. The user's
//     files in a directory that the tool has made are the tool's to change, and a link at a name where the user had none leads anywhere.
//   - Two sandboxes on one directory have two supervisors: a rename by one can come between the check and the act of the other. What
//     was made then is taken back, after a moment in which it was there.
//   - A git directory that is not called .git, and that the user's git is making at this moment outside, is held once it has
//     its shape; below modules, the names that are obeyed are held before. git clone --shared and --reference are refused
//     (objects/info/alternates), remotes that are directories have to be there, and ssh to localhost is refused.
//   - Of a tool's sockets under Rules.Connects the newest 64 can be connected or bound; 64 files of UNIX sockets and 32 ports be connected to, those
//     that are removed, or have no listener any more, not counted. Any process of the host can connect to such a port, by the supervisor's own address, and a rule of the host's
//     packet filter, or a program at its cgroup's connect(2), can send a connection elsewhere. Another sandbox that writes the same directory can put a socket of the host's, which lies in it, in the place of one
//     between bind(2) and the supervisor's look at it: that one can be connected to then.
//   - The other end of such a socket has the supervisor's credentials (SO_PEERCRED). /proc/PID/mem shows what the tool has mapped without the right
//     to read it, too: a path in such memory is not EFAULT with Rules.MemFile.
//   - A program whose file may not be read is not dumpable, and every served call of it is EACCES.
//   - A terminal opened by name never becomes the controlling one: TIOCSCTTY does that. /dev/tty of another session than the
//     supervisor's is found among descriptors 0 to 15 or, but for that which a session's command was given, in /dev/pts, else it is ENOENT or ENXIO.
//   - Of a socket named HEAD, objects, refs or commondir getsockname(2) tells the name alone, without the directories of the path.
//   - A socket that is bound has no SO_LINGER with a time any more (endLinger): to close it does not wait. What is set after bind(2) stays.
//   - An open that waits for a FIFO's other end is not ended by a signal that has a handler, only by a fatal one
//     (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19, without which a signal would have calls made twice).
//   - On a kernel that lacks "seccomp: Fix a race with WAIT_KILLABLE_RECV if the tracer replies too fast" (Linux 6.18, 6.1.156 and the other stable series
//     of October 2025) a signal with a handler that comes between a call and the supervisor's look at it can still have the call made twice, if the thread
//     runs only after the answer: a mkdir that was made is EEXIST then. A second call that is the thread's own looks the same to the supervisor.
//   - A directory whose path is longer than PATH_MAX can be changed where its file system has nameless files (O_TMPFILE): long_linux.go. A refused .git file, .gitmodules, strategy of a rebase or new configuration does not appear, which its writer is not told: the report has it.
//   - truncate(2) past RLIMIT_FSIZE is EFBIG without SIGXFSZ. O_PATH aside, fs.protected_symlinks is not applied.
//   - Each served call costs two changes of process and some fifteen system calls: a file is made on tmpfs in about six
//     times the time, and each directory between it and the root adds two fstatat (BenchmarkCall). Calls that are not in the filter's list cost what any filter costs.
package supervisor
