package main

import (
	"fmt"
	"slices"
	"time"
)

// A contender is one of several ways of doing the same thing. It takes its own
// time, so that what it prepares does not count.
type contender struct {
	name string
	run  func() (time.Duration, error)
}

// timed makes a contender of a function that counts as a whole.
func timed(name string, f func() error) contender {
	return contender{name, func() (time.Duration, error) {
		began := time.Now()
		err := f()
		return time.Since(began), err
	}}
}

// results are the times of each contender, round by round.
type results struct {
	names []string
	times [][]time.Duration
}

// interleave runs every contender once in each round, after a round that does
// not count.
func interleave(rounds int, list []contender) (*results, error) {
	r := &results{times: make([][]time.Duration, len(list))}
	for _, c := range list {
		r.names = append(r.names, c.name)
	}
	for round := range rounds + 1 {
		for i, c := range list {
			d, err := c.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 {
				r.times[i] = append(r.times[i], d)
			}
		}
	}
	return r, nil
}

// A spread is a median with its quartiles.
type spread struct{ low, median, high float64 }

// spreadOf returns the spread of a list, which it does not change.
func spreadOf(list []float64) spread {
	if len(list) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(q float64) float64 {
		pos := q * float64(len(sorted)-1)
		i := int(pos)
		if i+1 == len(sorted) {
			return sorted[i]
		}
		return sorted[i] + (pos-float64(i))*(sorted[i+1]-sorted[i])
	}
	return spread{at(0.25), at(0.5), at(0.75)}
}

// per returns the spread of f over the rounds of contenders i and base.
func (r *results) per(i, base int, f func(a, b float64) float64) spread {
	list := make([]float64, len(r.times[i]))
	for k := range list {
		list[k] = f(float64(r.times[i][k]), float64(r.times[base][k]))
	}
	return spreadOf(list)
}

// time is the spread of contender i, in units of unit.
func (r *results) time(i int, unit time.Duration) spread {
	return r.per(i, i, func(a, _ float64) float64 { return a / float64(unit) })
}

// ratio is the spread of each round's ratio of i to base.
func (r *results) ratio(i, base int) spread {
	return r.per(i, base, func(a, b float64) float64 { return a / b })
}

// added is the spread of each round's difference between i and base.
func (r *results) added(i, base int, unit time.Duration) spread {
	return r.per(i, base, func(a, b float64) float64 { return (a - b) / float64(unit) })
}

// quantile returns the time that a share q of a list does not exceed.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// millis prints a time in milliseconds.
func millis(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

// index returns the contender of that name; -1: none.
func (r *results) index(name string) int { return slices.Index(r.names, name) }
