package seccomp

// refusedRules are the calls that no profile allows. Most need a capability that a sandboxed
// tool does not have; they are refused so that a mistake elsewhere, or a bug behind the
// capability check, gains nothing.
func refusedRules() []Rule {
	return []Rule{
		refuse(EPERM, "namespaces are the sandbox's walls", "unshare", "setns"),
		refuse(EPERM, "mounts are the sandbox's walls",
			"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr"),
		refuse(ENOSYS, "as the mount calls; too new for programs to depend on", "open_tree_attr"),
		refuse(ENOSYS, "does socket, open and more where a filter does not see it; programs fall back to ordinary calls",
			"io_uring_setup", "io_uring_enter", "io_uring_register"),
		refuse(ENOSYS, "takes of one number that all users of the machine share (fs.aio-max-nr); programs fall back to ordinary calls",
			"io_setup", "io_submit", "io_getevents", "io_pgetevents", "io_cancel", "io_destroy"),
		refuse(EPERM, "the keyrings are not in any namespace", "add_key", "request_key", "keyctl"),
		refuse(EPERM, "programs and probes in the kernel", "bpf", "perf_event_open", "uprobe"),
		refuse(EPERM, "stops the kernel in the middle of a copy, which makes its races easy to win", "userfaultfd"),
		refuse(EPERM, "opens files by number, past every path (CVE-2014-3519)", "open_by_handle_at"),
		refuse(EPERM, "watches whole mounts and decides on others' opens", "fanotify_init", "fanotify_mark"),
		refuse(EPERM, "takes descriptors of, compares or advises other processes", "pidfd_getfd", "kcmp", "process_madvise"),
		refuse(EPERM, "memory on other nodes, with a history of kernel bugs (CVE-2016-3070)",
			"get_mempolicy", "set_mempolicy", "set_mempolicy_home_node", "mbind", "migrate_pages", "move_pages"),
		refuse(EPERM, "segments for 16-bit code, with a history of kernel bugs (CVE-2015-5157)", "modify_ldt"),
		refuse(EPERM, "the machine's hardware", "ioperm", "iopl"),
		refuse(EPERM, "replaces, extends or stops the kernel",
			"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
		refuse(EPERM, "the machine's clock", "settimeofday", "clock_settime"),
		refuse(EPERM, "the machine's swap, accounting, quotas and names",
			"swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "sethostname", "setdomainname"),
		refuse(EPERM, "the kernel's log", "syslog"),
		refuse(EPERM, "hangs up the terminal for all its users", "vhangup"),
		refuse(EPERM, "what security modules say of the process, and to them", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules"),
		refuse(EPERM, "facts about file systems, by calls that glibc no longer has", "sysfs", "ustat"),
		refuse(ENOSYS, "new in Linux 6.17 and later; programs fall back", "file_getattr", "file_setattr", "listns", "rseq_slice_yield"),
		refuse(ENOSYS, "gone from the kernel, or never there on this architecture",
			"_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms", "get_thread_area", "getpmsg",
			"lookup_dcookie", "nfsservctl", "putpmsg", "query_module", "security", "set_thread_area", "tuxcall", "uselib", "vserver"),
	}
}
