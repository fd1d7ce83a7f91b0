package resolve

import (
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Share puts the directories of Files.MayShare that this host has into Files.Write, where none can be private. MayShare then lists those alone.
func Share(f *policy.Files, private bool) {
	f.MayShare = slices.DeleteFunc(slices.Clone(f.MayShare), func(p string) bool {
		info, err := os.Stat(p)
		return private || err != nil || !info.IsDir()
	})
	f.Private = slices.DeleteFunc(slices.Clone(f.Private), func(p string) bool { return slices.Contains(f.MayShare, p) })
	f.Write = append(slices.Clip(f.Write), f.MayShare...)
}
