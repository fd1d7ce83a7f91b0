package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

// options are what the command line says.
type options struct {
	file, name, text string // one of them is given
	given            int
	params           map[string]string
	strict, classes  bool
	explain          []string // an operation and an argument
	command          []string
}

// usage is what a command line that cannot be gets, with status 64.
const usage = `usage: sandbox-exec [-f file | -n name | -p string] [-D key=value ...] [--strict] [--] command [arguments ...]
       sandbox-exec [-f file | -n name | -p string] [-D key=value ...] --explain OPERATION ARGUMENT
       sandbox-exec [-f file | -n name | -p string] [-D key=value ...] --classes
`

// mostText is how much of a file is read: more than a profile may have.
const mostText = 16<<20 + 1

// parse reads the arguments up to the command.
func parse(args []string) (*options, error) {
	o := &options{params: map[string]string{}}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			o.command = args[1:]
			return o, o.check()
		case arg == "--strict":
			o.strict = true
		case arg == "--classes":
			o.classes = true
		case arg == "--explain":
			if len(args) < 3 {
				return nil, fmt.Errorf("--explain takes an operation and an argument")
			}
			o.explain, args = args[1:3], args[2:]
		case len(arg) > 1 && arg[0] == '-' && strings.IndexByte("fnpD", arg[1]) >= 0:
			value := arg[2:]
			if value == "" {
				if len(args) < 2 {
					return nil, fmt.Errorf("option requires an argument -- %c", arg[1])
				}
				value, args = args[1], args[1:]
			}
			if err := o.take(arg[1], value); err != nil {
				return nil, err
			}
		case len(arg) > 1 && arg[0] == '-':
			return nil, fmt.Errorf("illegal option %s", arg)
		default:
			o.command = args
			return o, o.check()
		}
		args = args[1:]
	}
	return o, o.check()
}

func (o *options) take(option byte, value string) error {
	switch option {
	case 'f':
		o.file = value
	case 'n':
		o.name = value
	case 'p':
		o.text = value
	case 'D':
		key, text, ok := strings.Cut(value, "=")
		if !ok || key == "" {
			return fmt.Errorf("-D takes key=value, not %q", value)
		}
		o.params[key] = text
		return nil
	}
	o.given++
	return nil
}

func (o *options) check() error {
	switch {
	case o.given != 1:
		return fmt.Errorf("give exactly one of -f, -n and -p")
	case o.explain == nil && !o.classes && len(o.command) == 0:
		return fmt.Errorf("no command")
	}
	return nil
}

// profile reads the profile that the options name.
func (o *options) profile() (*sbpl.Profile, error) {
	switch {
	case o.name != "":
		params := map[string]string{}
		if dir := os.Getenv("TMPDIR"); dir != "" && dir[0] == '/' {
			params["TMPDIR"] = dir
		}
		for k, v := range o.params {
			params[k] = v
		}
		return sbpl.Named(o.name, params)
	case o.file != "":
		file, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, mostText))
		if err != nil {
			return nil, err
		}
		return sbpl.Parse(o.file, string(text), o.params)
	}
	return sbpl.Parse("<input string>", o.text, o.params)
}
