package supervisor

import "unsafe"

// What the harness and the supervisors of its commands share of what the tool has made: see made_linux.go.

const (
	madeBits   = 17
	madeSlots  = 1 << madeBits
	madeMost   = madeSlots / 2 // directories that the tool has made; the rest is for what no name may become free by
	madeWindow = 512           // slots in which an entry can be: enough until six of seven are used
)

// MadeBytes is the size of the record, a file of zeros at first.
const MadeBytes = unsafe.Sizeof(madeTable{})

// madeTable is a hash table. An entry lies in one of the madeWindow slots from its hash on, before the first that was never used.
type madeTable struct {
	made uint32 // slots of slotMade
	olds uint32 // entries of the other kinds that there were ever
	full uint32 // one of them did not fit: every name counts as one that the user's directories had
	slot [madeSlots]madeSlot
}

type madeSlot struct {
	kind uint32 // it is written last
	dev  uint32
	ino  uint64 // of the directory, or of that in which the name is
	key  uint64 // the directory's time of birth, or a hash of the name
	who  uint64 // of a name: whoSeen of the directory that had it; 0: a link had it, or it is not known
}

// The kinds of slots.
const (
	slotNone = iota // never used
	slotGone        // free again
	slotMade        // a directory that the tool has made
	slotOld         // one at a place where another has been: it counts as not made, and so does what is made in it
	slotName        // a name that a directory or link has had which the tool has not made
)
