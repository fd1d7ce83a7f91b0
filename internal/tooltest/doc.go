// Package tooltest has no code but tests. They run the tools that agents use (shells,
// compilers, package managers, databases, debuggers, a browser) in the default sandbox. Each is a
// script in testdata/tools, which says in its head what it needs and what it has to print.
package tooltest
