// Package protected is the table of the names that a tool may not make or change below a directory that
// it may write, and of what obeys each: git's hooks and configuration, shells' start-up files, editors', agents' and build
// tools' configurations.
//
//	for _, n := range protected.Names() {
//		fmt.Println(n.Path, n.Why)
//	}
//
// A Pattern says which names are meant, its Kind what is refused there. Package supervisor matches them and refuses,
// package policy lets a policy add and leave out names, and docs/protected-names.md lists the names.
//
// # Limits
//
// The table is of names that programs obey without being told to build or to read them. Of what lies in a git directory the
// supervisor has a list of its own, of what git needs there.
package protected
