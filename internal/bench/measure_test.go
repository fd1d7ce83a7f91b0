package main

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		name string
		list []float64
		want spread
	}{
		{"nothing has no spread", nil, spread{}},
		{"one figure is all three", []float64{7}, spread{7, 7, 7}},
		{"the order does not matter", []float64{5, 1, 3, 2, 4}, spread{2, 3, 4}},
		{"between two figures it lies between", []float64{1, 2}, spread{1.25, 1.5, 1.75}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := spreadOf(c.list); got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}

func TestContendersTakeTurns(t *testing.T) {
	var order string
	contend := func(name string, took time.Duration) contender {
		return contender{name, func() (time.Duration, error) { order += name; return took, nil }}
	}
	r, err := interleave(2, []contender{contend("a", 10), contend("b", 30)})
	if err != nil || order != "ababab" {
		t.Fatalf("%q, %v: want one round more than asked for, in turn", order, err)
	}
	if got := r.ratio(1, 0); got != (spread{3, 3, 3}) {
		t.Errorf("the ratio is %v", got)
	}
	if got := r.added(1, 0, 2); got != (spread{10, 10, 10}) {
		t.Errorf("the difference is %v", got)
	}
	if r.index("b") != 1 || r.index("c") != -1 {
		t.Error("a name is not found, or one that is not there")
	}
}

func TestOneFailureEndsAll(t *testing.T) {
	broken := errors.New("broken")
	_, err := interleave(2, []contender{timed("a", func() error { return broken })})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose([]string{"start", "all"}); err != nil || len(all) != len(sections) {
		t.Errorf("%d sections, %v", len(all), err)
	}
	if one, err := choose([]string{"start"}); err != nil || !slices.EqualFunc(one, []string{"start"}, func(s section, n string) bool { return s.name == n }) {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := choose([]string{"nothing"}); err == nil {
		t.Error("an unknown section was chosen")
	}
}

func TestTicksCountThisProcess(t *testing.T) {
	all, own := ticks()
	for n, began := 0, time.Now(); time.Since(began) < 100*time.Millisecond; n++ {
		_ = spreadOf([]float64{float64(n)})
	}
	later, mine := ticks()
	if runtime.GOOS == "linux" && (mine <= own || later < all) {
		t.Errorf("100 ms of work: all %v to %v, own %v to %v", all, later, own, mine)
	}
}
