package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// call is asked before every builtin, function and program. It changes the builtins that would ask this process's kernel for
// files, or run a script that rewrite has not seen.
func (h *handlers) call(ctx context.Context, args []string) ([]string, error) {
	i := 0
	for i < len(args)-1 && (args[i] == "command" || args[i] == "builtin") {
		if args[i] == "command" && args[i+1] == "--" {
			args = slices.Delete(slices.Clone(args), i+1, i+2)
		} else if strings.HasPrefix(args[i+1], "-") {
			break
		} else {
			i++
		}
	}
	name, rest := args[i], args[i+1:]
	switch name {
	case "cd":
		return h.cd(ctx, rest), nil
	case "pushd", "popd", "dirs":
		return failed(name + ": is not there in this shell; use cd"), nil
	case "pwd":
		if slices.Contains(rest, "-P") {
			return append([]string{ofSession + "pwd"}, rest...), nil
		}
	case "test", "[":
		if slices.ContainsFunc(rest, ofFiles) {
			return append([]string{ofSession + name}, rest...), nil
		}
	case "read": // without an echo it would read this process's terminal
		return append(slices.Clone(args[:i+1]), loud(rest)...), nil
	case "eval":
		return again(args[:i+1], strings.Join(rest, " "))
	case "trap":
		if first := slices.IndexFunc(rest, func(s string) bool { return s != "--" }); first >= 0 && len(rest) > first+1 && rest[first] != "-" {
			return again(append(slices.Clone(args[:i+1]), rest[:first]...), rest[first], rest[first+1:]...)
		}
	case "source", ".":
		if len(rest) > 0 {
			return append(append(slices.Clone(args[:i+1]), h.source(ctx, rest[0])), rest[1:]...), nil
		}
	case "type", "command":
		return find(ctx, args[i:]), nil
	}
	return args, nil
}

// again gives back the words before, a script rewritten, and the words after it.
func again(before []string, script string, after ...string) ([]string, error) {
	text, err := rewritten(script)
	if err != nil {
		return failed(before[0] + ": " + err.Error()), nil
	}
	return append(append(slices.Clone(before), text), after...), nil
}

// rewritten rewrites a script. One that cannot be parsed stays: the interpreter says why it cannot.
func rewritten(script string) (string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return script, nil
	}
	if err := rewrite(file); err != nil {
		return "", err
	}
	var b strings.Builder
	err = syntax.NewPrinter().Print(&b, file)
	return b.String(), err
}

// failed is a call that prints a message and has the status 1.
func failed(message string) []string {
	return []string{"eval", "echo " + quoted(message) + " >&2; (exit 1)"}
}

// quoted quotes a word for a script. Of one with a NUL, which none of a script's has, nothing is left.
func quoted(word string) string {
	q, err := syntax.Quote(word, syntax.LangBash)
	if err != nil {
		return "''"
	}
	return q
}

// cd sets PWD, if the session's kernel finds a directory there that can be entered.
func (h *handlers) cd(ctx context.Context, args []string) []string {
	env := interp.HandlerCtx(ctx).Env
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--" || s == "-L" })
	to, print := env.Get("HOME").String(), ""
	switch {
	case len(args) > 1:
		return failed("cd: usage: cd [DIRECTORY]")
	case len(args) == 1 && args[0] == "-":
		to = env.Get("OLDPWD").String()
		print = "; pwd"
	case len(args) == 1:
		to = args[0]
	}
	if to == "" {
		return failed("cd: empty directory path")
	}
	to = filepath.Clean(path(ctx, to))
	if _, err := h.sess.Files().WithContext(ctx).Stat(to + "/."); err != nil {
		return failed("cd: " + err.Error())
	}
	return []string{"eval", "OLDPWD=" + quoted(env.Get("PWD").String()) + " PWD=" + quoted(to) + print}
}

// loud leaves the flag for silence out of read's arguments.
func loud(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			break
		}
		args[i] = "-" + strings.ReplaceAll(arg[1:], "s", "")
	}
	return slices.DeleteFunc(args, func(s string) bool { return s == "-" })
}

// find answers type and command -v: without a PATH the interpreter finds functions and builtins and, as its directory is nowhere, no file.
// Files the session's shell finds.
func find(ctx context.Context, args []string) []string {
	path := interp.HandlerCtx(ctx).Env.Get("PATH").String()
	if path == "" && !slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "/") }) {
		return args
	}
	flags := 1
	for flags < len(args) && strings.HasPrefix(args[flags], "-") {
		flags++
	}
	if args[0] == "command" && !slices.Contains(args[1:flags], "-v") {
		return args // its own error, or nothing to do
	}
	then := ""
	switch {
	case slices.Contains(args[1:flags], "-t"):
		then = " >/dev/null && echo file"
	case args[0] == "type" && flags == 1:
		then = " >/dev/null && " + ofSession + "type "
	}
	b := strings.Builder{}
	b.WriteString("true")
	for _, name := range args[flags:] {
		word := quoted(name)
		b.WriteString("\n")
		if !strings.Contains(name, "/") {
			fmt.Fprintf(&b, "PATH= %s %s 2>/dev/null || ", strings.Join(args[:flags], " "), word)
		}
		found := "command -v -- " + word + then
		if strings.HasSuffix(then, "type ") {
			found += word
		}
		fmt.Fprintf(&b, "{ %s%s; } || (exit 1)", ofSession, found)
	}
	return []string{"eval", b.String()}
}

// sourced is a file that source will read.
type sourced struct {
	text []byte
	err  error
}

// source reads a script of the session and returns the name under which open has it, rewritten. The builtin would ask this
// process's kernel where the file is.
func (h *handlers) source(ctx context.Context, name string) string {
	var s sourced
	file := h.found(ctx, name)
	b, err := h.sess.Files().WithContext(ctx).ReadFile(file)
	if err == nil {
		var script string
		script, err = rewritten(string(b))
		s.text = []byte(script)
	}
	if err != nil {
		s.err = pathError("source", file, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources++
	key := fmt.Sprintf("%s/source/%d", nowhere, h.sources)
	h.sourced[key] = s
	return key
}

// takeSourced returns what source has read, once.
func (h *handlers) takeSourced(name string) (sourced, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sourced[name]
	delete(h.sourced, name)
	return s, ok
}

// found is the path of a script: in PATH, if it has no slash, or in the working directory.
func (h *handlers) found(ctx context.Context, name string) string {
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(interp.HandlerCtx(ctx).Env.Get("PATH").String()) {
			file := path(ctx, filepath.Join(dir, name))
			if info, err := h.sess.Files().WithContext(ctx).Stat(file); err == nil && info.Mode().IsRegular() {
				return file
			}
		}
	}
	return path(ctx, name)
}
