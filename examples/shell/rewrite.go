package main

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// rewrite makes a script ask the session what the interpreter would ask this process's kernel, of which no handler is told:
//
//	[[ -r FILE ]]   becomes   [[ -n "$(file=FILE; [ -r "$file" ] && echo yes)" ]], and [ is the session's: see call
//	<(SCRIPT)       is refused: the interpreter makes a FIFO in this process's /tmp
//
// Scripts that a script makes (eval, trap, source) go the same way before they run: see call.
func rewrite(file *syntax.File) error {
	var err error
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ProcSubst:
			err = errors.New("process substitution is not there in this shell; use a pipe or a file")
		case *syntax.TestClause:
			n.X = asked(n.X)
		}
		return true
	})
	return err
}

// fileTests are the operators of test and [[ that ask for files.
const fileTests = " -a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S -nt -ot -ef "

func ofFiles(operator string) bool { return strings.Contains(fileTests, " "+operator+" ") }

// asked rewrites the tests of files in a condition of [[: the session is asked.
func asked(x syntax.TestExpr) syntax.TestExpr {
	switch x := x.(type) {
	case *syntax.ParenTest:
		x.X = asked(x.X)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); !ok {
			x.X = asked(x.X)
		} else if ofFiles(x.Op.String()) {
			return condition(`file=. other=.; [ `+x.Op.String()+` "$file" ]`, w, w)
		}
	case *syntax.BinaryTest:
		left, ok := x.X.(*syntax.Word)
		right, ok2 := x.Y.(*syntax.Word)
		if !ok || !ok2 {
			x.X, x.Y = asked(x.X), asked(x.Y)
		} else if ofFiles(x.Op.String()) {
			return condition(`file=. other=.; [ "$file" `+x.Op.String()+` "$other" ]`, left, right)
		}
	}
	return x
}

// condition returns a test that is true if the script succeeds. The script finds the two words in its variables file and other.
func condition(script string, file, other *syntax.Word) syntax.TestExpr {
	parsed, err := syntax.NewParser().Parse(strings.NewReader(`[[ -n "$(`+script+` && echo yes)" ]]`), "")
	if err != nil {
		panic(err)
	}
	words := []*syntax.Word{file, other}
	syntax.Walk(parsed, func(n syntax.Node) bool {
		if a, ok := n.(*syntax.Assign); ok && len(words) > 0 {
			a.Value, words = words[0], words[1:]
		}
		return true
	})
	return parsed.Stmts[0].Cmd.(*syntax.TestClause).X
}
