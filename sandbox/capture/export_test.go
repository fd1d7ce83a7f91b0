package capture

import "os"

// RegisterProgram makes the test binary a program of a name.
func RegisterProgram(name string, program func()) { helpers[name] = program }

// Exe is a path of the test binary that its user can execute.
func Exe() string {
	if toolFile != "" {
		return toolFile
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return exe
}

// toolFile is where the test binary is shown to a user who cannot go to it.
var toolFile string
