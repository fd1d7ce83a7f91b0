// Package regularfile opens a regular file whose path a tool may have chosen or prepared, and nothing else:
//
//	f, err := regularfile.Open("/home/u/project/x/config") // ErrNotRegular if that leads to a FIFO, a device or into /proc
//	text, err := regularfile.Read("/home/u/project/x/config", 1<<20)
//	d, err := regularfile.OpenDir("/home/u/project/x")
//
// An open alone can have an effect: a tape is rewound, a watchdog starts, a FIFO waits for its other end (fifo(7)), a file of tracefs or /proc/kmsg
// takes from others what is read. On Linux the file is looked at before it is opened, by a descriptor that opens nothing (O_PATH of open(2)), and it
// is that file which is then opened, whatever lies at the path by now. On other systems it is looked at by name first, and what is exchanged
// between the two looks is opened, without waiting, and closed.
//
// Links are followed. A file system whose server does not answer is waited for, and what is mounted on demand (autofs) in the middle of a path is mounted.
package regularfile
