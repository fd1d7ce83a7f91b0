// Package archtest holds no code but tests of the import rules between the packages of this
// module: who imports whom, where unsafe is, what every file must look like,
// what the code that has no Go runtime calls, that the tree drawn in the module's
// doc.go is the one there is, and that the pages name tests that exist and show Go that compiles.
//
// # Limits
//
// Most of the tests read source files and compile nothing, so they see the
// files of every operating system and architecture at once. Those of cycles and snippets see this system's packages, by go list's export data. One reads the machine
// code of what runs without a Go runtime on Linux, with HOLDFAST_TESTS=all for both architectures. TestFigures, with -v or
// HOLDFAST_TESTS=all, builds a program with counters and counts the functions that a command passes through.
package archtest
