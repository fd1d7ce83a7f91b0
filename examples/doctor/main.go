// Doctor says what this host can hold: the facts that a sandbox is built on,
// each with how it was found out and with what would turn a no into a yes, and
// the bounds of the default sandbox as one run of /bin/true has proved them.
//
//	go run ./examples/doctor [-json]
//	go run ./examples/doctor -fix             what to write where, for this container, service or host
//	go run ./examples/doctor -file NAME       one of the files of docs/hosts, such as docker-seccomp.json
//	go run ./examples/doctor -self-test       some twenty acts in the default sandbox: a report to paste
//
// It exits with 0 if the default sandbox holds every bound here, and with 1
// otherwise. It changes nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	asFix := flag.Bool("fix", false, "print what lets this host hold every bound, in lines to copy")
	asTest := flag.Bool("self-test", false, "try the default sandbox, and print a report to paste into an issue")
	file := flag.String("file", "", "print the file of docs/hosts of this `name`: "+strings.Join(fileNames(), ", "))
	flag.Parse()
	switch {
	case *file != "":
		end(true, printFile(os.Stdout, *file))
	case *asFix:
		fix(os.Stdout, sandbox.Probe())
		return
	case *asTest:
		end(selfTest(os.Stdout))
	}
	d := examine()
	end(d.Held, d.print(os.Stdout, *asJSON))
}

// end ends this program.
func end(good bool, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "doctor:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
	os.Exit(0)
}

// A diagnosis is what doctor prints.
type diagnosis struct {
	Host   sandbox.Host    `json:"host"`
	Held   bool            `json:"held"`            // the default sandbox holds every bound
	Error  string          `json:"error,omitempty"` // why it could not be tried
	Report *sandbox.Report `json:"report,omitempty"`
}

// examine looks at the host and runs one tool in the default sandbox.
func examine() diagnosis {
	d := diagnosis{Host: sandbox.Probe()}
	var err error
	if d.Report, err = try(); err != nil {
		d.Error = err.Error()
	}
	d.Held = err == nil && d.Report.Held()
	return d
}

func try() (*sandbox.Report, error) {
	dir, err := os.MkdirTemp("", "doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sandbox.New(sandbox.Workspace(dir))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	tool, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	cmd := s.Command(tool)
	cmd.Dir = dir
	err = cmd.Run()
	return cmd.Report(), err
}

func (d diagnosis) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	fmt.Fprintf(w, "kernel %s, user %d", d.Host.Kernel, d.Host.UID)
	if around := d.Host.Around.String(); around != "" {
		fmt.Fprintf(w, ", in %s", around)
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range d.Host.List() {
		answer := f.Answer.String()
		if f.Yes() && f.Value != 0 {
			answer += fmt.Sprintf(" (%d)", f.Value)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, answer, f.Reason)
		if !f.Yes() && f.Remedy != "" {
			fmt.Fprintf(t, "\t\tremedy: %s\n", f.Remedy)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if d.Error != "" {
		fmt.Fprintf(w, "\nThe default sandbox cannot be held here:\n%s\n", d.Error)
	}
	if d.Report != nil {
		fmt.Fprintf(w, "\nThe default sandbox, as one run has shown it:\n%v", d.Report)
	}
	return nil
}
