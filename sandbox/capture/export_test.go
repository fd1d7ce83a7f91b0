package capture

import "os"

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
