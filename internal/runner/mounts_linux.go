package runner

import (
	"iter"
	"os"
	"strings"
)

// hostMounts yields the mount points that the harness sees, in the calling thread as a start does, with the kinds of their file
// systems (proc_pid_mountinfo(5)). Where they cannot be read there are none.
func hostMounts() iter.Seq2[string, string] {
	return func(yield func(at, kind string) bool) {
		info, _ := os.ReadFile("/proc/thread-self/mountinfo")
		for line := range strings.Lines(string(info)) {
			before, after, _ := strings.Cut(line, " - ")
			kind, _, _ := strings.Cut(after, " ")
			if f := strings.Fields(before); len(f) > 4 && !yield(strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4]), kind) {
				return
			}
		}
	}
}
