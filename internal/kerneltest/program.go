package kerneltest

import "os"

// Programs are what the test binary is instead, when it is executed under one of these
// names: a tool inside a sandbox, a harness that is killed. Tests add theirs in init.
var Programs = map[string]func(){}

// beProgram is the whole of such an execution.
func beProgram() {
	if program := Programs[os.Args[0]]; program != nil {
		program()
		os.Exit(0)
	}
}
