package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sections are run in this order.
var sections = []section{
	{"start", 200, start},
	{"warm", 200, warm},
	{"files", 100, files},
	{"many", 400, many},
	{"harness", 200, harness},
	{"rules", 50, rules},
	{"binds", 10, binds},
	{"syscalls", 20, calls},
	{"build", 10, build},
	{"work", 7, work},
	{"first", 40, first},
	{"workers", 7, throughput},
	{"memory", 1, memory},
	{"workspace", 20, workspaces},
	{"sessions", 20, sessions},
	{"crowd", 5, crowd},
	{"network", 10, network},
}

// workers are what this program does when it is executed with their name as its
// first argument.
var workers = map[string]func(args []string) error{
	harnessWorker:  beHarness,
	callsWorker:    makeCalls,
	firstWorker:    beFirst,
	sessionsWorker: beSessions,
	crowdWorker:    beCrowd,
	networkClient:  beNetworkClient,
	networkHarness: beNetworkHarness,
}

func kernelName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}

// load is what else the machine had to do, by the kernel's count.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	words := strings.Fields(string(text))
	if err != nil || len(words) < 3 {
		return "load unknown"
	}
	return "load " + strings.Join(words[:3], " ")
}

// ticks are what the machine's processors have done since it was started, and what this process and its dead children have, in seconds.
func ticks() (all, own float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(word, 64)
		if i > 0 && i != 4 && i != 5 && i < 9 { // neither idle nor waiting for a disk; guests count as user
			all += n / 100
		}
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			own += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		}
	}
	return all, own
}
