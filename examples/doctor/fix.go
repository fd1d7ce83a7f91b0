package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/docs/hosts"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// fix prints what lets this host hold every bound, in lines to copy. It changes nothing.
func fix(w io.Writer, h sandbox.Host) {
	ways := h.Ways()
	around := h.Around.String()
	if around == "" {
		around = "a host on which no container runtime and no service manager was recognised"
	}
	cannot := "Namespaces cannot be made"
	if h.SharedPIDs {
		cannot = "No pid namespace can be made"
	}
	switch {
	case h.Namespaces.Yes() && !h.SharedPIDs:
		fmt.Fprintf(w, "Nothing is to be changed for namespaces: they can be made (%s).\n", around)
	case len(ways) == 0:
		fmt.Fprintf(w, "%s (%s): %s.\nWhat helps: %s.\n", cannot, around, h.Namespaces.Reason, h.Namespaces.Remedy)
	default:
		fmt.Fprintf(w, "%s (%s): %s.\nEach of these alone lets this program make all namespaces:\n", cannot, around, h.Namespaces.Reason)
		for _, way := range ways {
			fmt.Fprintf(w, "\n%s:\n    %s\n", way.In, strings.ReplaceAll(way.Text, "\n", "\n    "))
		}
		fmt.Fprint(w, "\nThe files of docs/hosts: doctor -file NAME prints one.\n")
		for _, name := range fileNames() {
			fmt.Fprintf(w, "    %s\n", name)
		}
	}
	if !h.Namespaces.Yes() || h.SharedPIDs {
		fmt.Fprint(w, "\nTo run without them, weaker, as the report of each run then says:\n    policy = policy.InContainer()\n")
	}
	for _, f := range h.List()[1:] {
		if !f.Yes() && f.Remedy != "" && f.Remedy != h.Namespaces.Remedy && !strings.HasPrefix(f.Remedy, "none needed") {
			fmt.Fprintf(w, "\n%s: %s\n    remedy: %s\n", f.Name, f.Reason, f.Remedy)
		}
	}
}

// fileNames lists the files of docs/hosts.
func fileNames() []string {
	names, _ := fs.Glob(hosts.Files, "*") // a bad pattern alone is an error
	return names
}

// printFile prints one of them.
func printFile(w io.Writer, name string) error {
	text, err := hosts.Files.ReadFile(path.Base(name))
	if err != nil {
		return fmt.Errorf("-file %q is not one of %s", name, strings.Join(fileNames(), ", "))
	}
	_, err = w.Write(text)
	return err
}
