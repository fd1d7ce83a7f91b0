package main

import (
	"os"
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
	{"memory", 1, memory},
	{"network", 10, network},
}

// workers are what this program does when it is executed with their name as its
// first argument.
var workers = map[string]func(args []string) error{
	harnessWorker:  beHarness,
	callsWorker:    makeCalls,
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
