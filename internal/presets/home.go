package presets

import (
	"io"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// variables is what a preset passes of the environment.
func (b *Builder) variables() policy.Env {
	set := map[string]string{"HOME": b.home, "TMPDIR": "/tmp", "PATH": b.toolPath()}
	for name, root := range b.roots {
		set[name] = root
	}
	if b.env("GOENV") == "" { // go reads the user's file; as variables its settings need no directories in each tool's home
		for name, value := range goSettings(b.readConfigs(".config/go/env")) {
			if b.env(name) == "" && value != "" { // go's own order
				set[name] = value
			}
		}
	}
	return policy.Env{
		Pass: []string{"*", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_NOSYSTEM"},
		Set:  set,
	}
}

// splitList splits a value such as PATH. Empty elements, which would mean the
// working directory, are left out.
func splitList(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ":"), func(s string) bool { return s == "" })
}

// homeFiles are the settings that the tool's home has from the start.
func (b *Builder) homeFiles() []policy.File {
	workspaces := []string{b.workspace}
	if real := resolve.New().Canonical(b.workspace); len(real) > 0 && real[0] != b.workspace {
		workspaces = append(workspaces, real[0]) // git looks at the path it arrives at
	}
	if top, _, problem := gitobeyed.Above(workspaces[len(workspaces)-1]); top != "" && problem == "" {
		workspaces = append(workspaces, top)
	}
	return b.gitConfig(workspaces...)
}

// maxConfig bounds what is read of a configuration file.
const maxConfig = 1 << 20

// readConfigs returns the text of those files of the home that can be read, in
// order, each ended by a newline. A file that a tool could have written is not
// read.
func (b *Builder) readConfigs(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		p := pathrule.Join(b.home, name)
		at := b.Find(p)
		if b.homeReal == "" || at.Err != nil || !at.Mode.IsRegular() || !b.places.Holds(at.Path) {
			continue
		}
		f, err := regularfile.Open(at.Path)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, maxConfig))
		f.Close()
		if err == nil {
			text.Write(data)
			text.WriteByte('\n')
		}
	}
	return text.String()
}
