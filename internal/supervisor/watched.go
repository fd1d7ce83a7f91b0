package supervisor

import "unsafe"

// A WatchReader takes the records of a run out of the memory.
type WatchReader struct {
	Read  func(b []byte, at int64) bool // from byte at of the memory that init shares
	Write func(b []byte, at int64) bool
	next  uint32
}

// All hands every record that is there to add, and returns how many were lost so far.
func (w *WatchReader) All(add func(d Denial)) (beyond uint64) {
	t := new(watchHead)
	head := unsafe.Slice((*byte)(unsafe.Pointer(t)), unsafe.Sizeof(*t))
	if !w.Read(head, int64(DenialBytes)) {
		return 0
	}
	if t.head == w.next || t.head-w.next > WatchRoom {
		return t.beyond // the second is said by a broken memory alone
	}
	r, begin := new(watchRecord), w.next
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	for ; w.next != t.head; w.next++ {
		at := DenialBytes + unsafe.Offsetof(watchTable{}.record) + uintptr(w.next%WatchRoom)*unsafe.Sizeof(*r)
		if !w.Read(bytes, int64(at)) || r.number != w.next || r.hash != r.denial.sum() {
			break // it is not there as a whole yet, as other processors see it
		}
		if d, ok := denialOf(&r.denial); ok {
			d.NoFollow = r.denial.hit[0]&noFollow != 0
			add(d)
		}
	}
	if t.tail = w.next; w.next != begin {
		w.Write(head[unsafe.Offsetof(t.tail):][:unsafe.Sizeof(t.tail)], int64(DenialBytes+unsafe.Offsetof(t.tail)))
	}
	return t.beyond
}
