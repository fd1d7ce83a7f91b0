// Command preparedrun counts what a command of a prepared sandbox passes through in the harness:
//
//	preparedrun WORKSPACE COUNTERS [explain]
//
// It has to be built with -cover -covermode=atomic, and writes the counters of its second command into a directory.
package main

import (
	"errors"
	"log"
	"os"
	"runtime/coverage"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
	workspace, counters := os.Args[1], os.Args[2]
	p := sandbox.Workspace(workspace)
	p.Network.Explain = len(os.Args) > 3
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	run := func() error {
		c := s.Command("true")
		c.Dir = workspace
		return c.Run()
	}
	err = run() // makes what later ones find made
	err = errors.Join(err, coverage.ClearCounters(), run(), coverage.WriteMetaDir(counters), coverage.WriteCountersDir(counters))
	if err != nil {
		log.Fatal(err)
	}
}
