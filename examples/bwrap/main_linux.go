package main

import "os"

// version is the bubblewrap whose options these are.
const version = "bubblewrap 0.11.1"

func main() { os.Exit(mainStatus(os.Args)) }

func mainStatus(args []string) int {
	say := &speaker{out: os.Stderr}
	o, err := parse(args[1:], args[0], say)
	switch e := err.(type) {
	case nil:
	case *wantsText:
		e.out.WriteString(e.text)
		return e.status
	default:
		say.fail(err)
		return 1
	}
	status, err := run(o, say)
	if err != nil {
		say.fail(err)
		return 1
	}
	return status
}
