package supervisor

import "unsafe"

// What Rules.Watch has recorded lies behind the table of denials, in a ring: init writes records, and the harness takes them out all the
// time, since most are of paths that are not there outside either, which init cannot know. A ring that is full loses what comes, and
// counts it; a tool can bring that about, and hides by it what it looks at, but no denial of denialTable.

// WatchRoom is how many records there are in the ring.
const WatchRoom = 2048

// WatchBytes is the size of the ring.
const WatchBytes = unsafe.Sizeof(watchTable{})

type watchTable struct {
	watchHead
	record [WatchRoom]watchRecord
}

type watchHead struct {
	head   uint32 // records written, by init
	tail   uint32 // records taken out, by the harness
	beyond uint64 // records for which there was no room
}

type watchRecord struct {
	number uint32 // which one of all it is
	_      uint32
	hash   uint64
	denial denialRecord
}

// noFollow, in a record's hit, says that the call is about a symbolic link itself.
const noFollow = 1
