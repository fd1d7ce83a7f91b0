package process_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/landlock/process"
)

// A program that locks itself down at its start.
func ExampleRestrict() {
	if len(os.Args) < 100 { // in a program of your own: always
		return
	}
	abi, err := landlock.ABI()
	if err != nil {
		log.Fatal(err)
	}
	r, lost, err := landlock.Downgrade(landlock.Ruleset{
		Paths: []landlock.PathRule{{Path: "/usr", Access: landlock.FSReadExecute}},
	}, abi)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range lost {
		log.Print(l) // or refuse to run
	}
	if err := process.Restrict(r); err != nil {
		log.Fatal(err)
	}
}

// A restriction that cannot be shown to hold is worse than none: nobody would know.
func ExampleCheckError() {
	var err error = &process.CheckError{Act: "list /"}
	var check *process.CheckError
	if errors.As(err, &check) && check.Err == nil {
		fmt.Println("not restricted, for one can still", check.Act)
	}
	fmt.Println(err)
	// Output:
	// not restricted, for one can still list /
	// landlock: the restriction is not in force: the kernel let this thread list /
}
