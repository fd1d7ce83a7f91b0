// Package rootfs describes a root that is built entry by entry, in order, at any path, as
// bubblewrap's options do:
//
//	root := &rootfs.Layout{Entries: []rootfs.Entry{
//		rootfs.Bind{Source: "/usr", At: "/usr"},
//		rootfs.Symlink{Target: "usr/lib64", At: "/lib64"},
//		rootfs.Tmpfs{At: "/tmp"},
//	}}
//	s, err := sandbox.New(sandbox.Policy{Root: root})
//
// It is plain data, for a policy's Root. With it go the namespaces that the tool shares
// and the capabilities that it keeps. docs/bubblewrap.md has the entry for each of
// bubblewrap's options.
//
// # Limits
//
// A layout needs namespaces. Whether it can be built is known when a command starts.
package rootfs
