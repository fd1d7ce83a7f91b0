package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A section is one table or a few.
type section struct {
	name   string
	rounds int // when -n does not say
	run    func(rounds int) ([]table, error)
}

func main() {
	if len(os.Args) > 1 && workers[os.Args[1]] != nil {
		if err := workers[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	rounds := flag.Int("n", 0, "rounds; 0: what suits each section")
	busy := flag.Bool("busy", false, "print figures also where other programs were busy meanwhile")
	flag.Usage = usage
	flag.Parse()
	chosen, err := choose(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		usage()
		os.Exit(2)
	}
	fmt.Printf("%s; %s, %d CPUs, %s/%s; %s\n", kernelName(), runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, load())
	for _, s := range chosen {
		n := s.rounds
		if *rounds > 0 {
			n = *rounds
		}
		before, began := others(), time.Now()
		tables, err := s.run(n)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", s.name, err)
			os.Exit(1)
		}
		if share := (others() - before) / time.Since(began).Seconds(); share > mostOthers && !*busy {
			fmt.Printf("\n%s: no figures: other programs took %.1f processors meanwhile, and %.1f are as many as leave a ratio its worth (-busy prints them)\n", s.name, share, mostOthers)
			continue
		}
		for _, t := range tables {
			fmt.Printf("\n%s", t)
		}
		fmt.Printf("\n`go run ./internal/bench -n %d %s`; %s\n", n, s.name, load())
	}
}

// mostOthers is how many processors other programs may have taken during a section.
const mostOthers = 0.3

// others returns the seconds of processors that others than this program and its children have taken.
func others() float64 {
	all, own := ticks()
	return all - own
}

// choose returns the sections of the given names; none: all.
func choose(names []string) ([]section, error) {
	if len(names) == 0 || slices.Contains(names, "all") {
		return sections, nil
	}
	var chosen []section
	for _, name := range names {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no section %q", name)
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

func usage() {
	names := []string{"all"}
	for _, s := range sections {
		names = append(names, s.name)
	}
	fmt.Fprintf(os.Stderr, "usage: bench [-n ROUNDS] [%s]\n", strings.Join(names, "|"))
	flag.PrintDefaults()
}
