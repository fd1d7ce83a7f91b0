package seatbelt

import (
	"embed"
	"slices"
	"strings"
)

// standIns are ours: written for this package from what the interfaces'
// documentation says they do.
//
//go:embed profiles/*.sb
var standIns embed.FS

// imports are the names of Apple's files that have a stand-in.
var imports = []string{"system.sb", "bsd.sb"}

// names are those of sandbox-exec -n; sandbox_init(3) documents what they do.
var names = []string{"no-internet", "no-network", "no-write", "no-write-except-temporary", "pure-computation"}

// Import returns our stand-in for one of Apple's importable profiles, by the last
// element of its name: system.sb and bsd.sb.
func Import(name string) (Source, bool) {
	return standIn(lastElement(name), imports)
}

// Names returns the names that Named knows.
func Names() []string { return slices.Clone(names) }

// Named returns our profile of the name that sandbox-exec -n takes. A TMPDIR parameter
// is a further temporary directory of no-write-except-temporary.
func Named(name string) (Source, bool) {
	for _, n := range names {
		if n == name {
			return standIn(name+".sb", []string{name + ".sb"})
		}
	}
	return Source{}, false
}

func standIn(file string, known []string) (Source, bool) {
	if !slices.Contains(known, file) {
		return Source{}, false
	}
	text, err := standIns.ReadFile("profiles/" + file)
	return Source{Name: file, Text: string(text)}, err == nil
}

// lastElement is a path's, for imports.
func lastElement(name string) string {
	return name[strings.LastIndexByte(name, '/')+1:]
}
