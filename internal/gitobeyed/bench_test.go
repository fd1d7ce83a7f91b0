package gitobeyed

import (
	"os"
	"strconv"
	"testing"
)

// BenchmarkIn is what sandbox.New pays for a workspace: a repository, and a directory of a hundred directories.
func BenchmarkIn(b *testing.B) {
	for _, dirs := range []int{0, 10, 100, 1000} {
		b.Run(strconv.Itoa(dirs), func(b *testing.B) {
			dir := b.TempDir()
			for name, text := range map[string]string{"/.git/HEAD": "ref: refs/heads/main\n", "/.git/config": "[core]\n\tbare = false\n"} {
				if err := os.MkdirAll(dir+"/.git", 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(dir+name, []byte(text), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			for i := range dirs {
				if err := os.Mkdir(dir+"/d"+strconv.Itoa(i), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				In(dir, shown)
			}
		})
	}
}
