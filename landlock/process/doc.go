// Package process restricts every thread of the calling process with a Landlock ruleset: a
// program locking itself down. It is a package of its own because it uses go-landlock, which
// reaches the threads that Go did not start by libpsx where cgo is on.
//
//	r := landlock.Ruleset{Paths: []landlock.PathRule{
//		{Path: "/usr", Access: landlock.FSReadExecute},
//		{Path: "/var/lib/mine", Access: landlock.FSReadWrite},
//	}}
//	abi, err := landlock.ABI()
//	r, lost, err := landlock.Downgrade(r, abi) // decide here whether what is lost may be
//	err = process.Restrict(r)                  // all threads, for good, with no_new_privs
//
// # Limits
//
// All that package landlock does not restrict is not restricted here. Restrict asks
// go-landlock for exactly the rights of the ruleset and never for its best effort, which gives
// up everything without an error where refer is granted on Landlock ABI 1, and on a kernel
// before ABI 8 in a program built with the tag landlocktsync. Such a program gets an error
// here.
//
// A C library that starts threads without pthread_create keeps them unrestricted before ABI 8.
// With cgo, before ABI 8, /proc/<pid>/task of the process itself stays listable
// (https://github.com/landlock-lsm/go-landlock/issues/39).
package process
