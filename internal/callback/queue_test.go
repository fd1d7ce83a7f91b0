package callback

import (
	"testing"
	"time"
)

func TestAQueueTellsInOrderWhatItHasRoomFor(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 2*mostQueued)
	var got []int
	q := NewQueue(func(i int) { began <- struct{}{}; <-release; got = append(got, i); panic("which is ignored") })
	const n = mostQueued + 200
	q.Add(0)
	<-began // it needs no room any more
	for i := 1; i < n; i++ {
		q.Add(i)
	}
	lost := q.Lost()
	if lost != 199 {
		t.Errorf("%d lost", lost)
	}
	close(release)
	q.End(time.Hour, func(lost int) int { return -lost })
	for i, e := range got[:len(got)-1] {
		if i != e {
			t.Fatalf("%d in the place of %d", e, i)
		}
	}
	if q.Add(0); len(got) != n-lost+1 || got[len(got)-1] != -lost || q.Lost() != lost+1 {
		t.Errorf("%d told, %d lost", len(got), q.Lost())
	}
}

func TestAQueueBeginsNoCallAfterItsEnd(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 8)
	q := NewQueue(func(int) { began <- struct{}{}; <-release })
	q.Add(1)
	q.Add(2)
	<-began
	q.End(time.Millisecond, func(int) int { t.Error("told after the end"); return 0 })
	close(release)
	<-q.drained
	if len(began) != 0 || q.Lost() != 2 {
		t.Errorf("%d calls after the end, %d lost, of two events and the last", len(began), q.Lost())
	}
}

func TestAQueueOfNothingIsNothing(t *testing.T) {
	q := NewQueue[int](nil)
	q.Add(1)
	q.End(time.Hour, nil)
	if q != nil || q.Lost() != 0 {
		t.Errorf("%+v", q)
	}
	NewQueue(func(int) {}).End(time.Hour, nil) // without an event there is no goroutine to wait for
}
