package sbpl

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

//go:embed testdata/*.sb
var profiles embed.FS

// theirs are the profiles that package seatbelt holds to tables of what they
// mean. Their paths are macOS's; abroad says where they are tried.
var theirs = os.DirFS("../../internal/seatbelt/testdata/profiles")

var abroad = [][2]string{
	{"/Users/me/src/app", "/ws"}, {"/Users/me/src", "/ws"}, {"/Users/me/secret", "/home/.ssh"}, {"/Users/me/", "/home/"}, {"/Users/me", "/home"},
	{"/private/var/tmp/build/execroot", "/ws"}, {"/private/var/tmp", "/tmp"}, {"/private/tmp", "/tmp"},
	{"/one/.env", "/ws/.env"}, {"/one", "/ws"}, {"/two", "/other"}, {"/three/kept", "/home/project/secret"}, {"/three", "/home"}, {"/four/in/not", "/ws/ro/rw/deep"}, {"/four/in", "/ws/ro/rw"}, {"/four", "/ws/ro"}, {"/five/r", "/link-target"}, {"/five", "/tmp"},
}

// profileNames are all of them.
func profileNames(t *testing.T) []string {
	t.Helper()
	ours, err1 := fs.Glob(profiles, "testdata/*.sb")
	others, err2 := fs.Glob(theirs, "*.want")
	if err1 != nil || err2 != nil || len(ours) < 30 || len(others) < 20 {
		t.Fatal(len(ours), err1, len(others), err2)
	}
	var names []string
	for _, o := range ours {
		names = append(names, strings.TrimSuffix(path.Base(o), ".sb"))
	}
	for _, o := range others {
		names = append(names, "seatbelt/"+strings.TrimSuffix(o, ".want"))
	}
	return names
}

// readProfile parses a profile for a world, with what lets the actor run.
func readProfile(t *testing.T, name string, w world, exe string) *Profile {
	t.Helper()
	params := map[string]string{"T": w.Root, "WS": w.Root + "/ws", "HOME": w.Root + "/home", "ACTOR": exe}
	their, ok := strings.CutPrefix(name, "seatbelt/")
	if !ok {
		text, err := profiles.ReadFile("testdata/" + name + ".sb")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(name, string(text)+last(), params)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	table, err := fs.ReadFile(theirs, their+".want")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "param" {
			params[f[1]] = moved(f[2], w)
		}
	}
	source, ok := seatbelt.Named(strings.TrimPrefix(their, "named-"))
	if !ok {
		source, ok = theirSource(their+".sb", w)
	}
	if !ok {
		t.Fatal("no source")
	}
	source.Text += last()
	p, err := seatbelt.Parse(source, seatbelt.Options{Params: params, Import: func(name string) (seatbelt.Source, bool) {
		if s, ok := theirSource(path.Base(name), w); ok {
			return s, ok
		}
		return seatbelt.Import(name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &Profile{parsed: p}
}

func theirSource(file string, w world) (seatbelt.Source, bool) {
	text, err := fs.ReadFile(theirs, file)
	return seatbelt.Source{Name: file, Text: moved(string(text), w)}, err == nil
}

// moved puts paths of macOS into the world.
func moved(text string, w world) string {
	for _, m := range abroad {
		text = strings.ReplaceAll(text, m[0], w.Root+m[1])
	}
	return text
}

// last lets the actor run, with the libraries that this program has been linked
// to, whatever the profile says before.
func last() string {
	maps, _ := os.ReadFile("/proc/self/maps")
	seen := map[string]bool{}
	for _, l := range loaders {
		maps = append(maps, (l + "\n")...)
	}
	text := `(allow process-exec* file-read* file-map-executable (literal (param "ACTOR")))`
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 && strings.Contains(line, ".so") && !seen[line[i:]] {
			seen[line[i:]] = true
			text += fmt.Sprintf("(allow process-exec* file-read* file-map-executable (literal %q))", strings.TrimSpace(line[i:]))
		}
	}
	return text
}
