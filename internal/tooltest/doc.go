// Package tooltest has no code but tests. They run the tools that agents use (shells,
// compilers, package managers, databases, debuggers, a browser) in the default sandbox. Each is a
// script in testdata/tools, which says in its head what it needs and what it has to print. user_rows_linux_test.go has a table of what the pages of docs promise:
// each row is played as root in /root, and as an ordinary user in a home below /home, with a project as users have them.
package tooltest
