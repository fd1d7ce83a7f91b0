// Package archtest holds no code but tests of the import rules between the packages of this
// module: who imports whom, where unsafe is, what every file must look like,
// what the code that has no Go runtime calls, and that the tree drawn in the module's
// doc.go is the one there is.
//
// # Limits
//
// All but one of the tests read source files and compile nothing, so they see the
// files of every operating system and architecture at once. That one reads the machine
// code of what runs without a Go runtime on Linux, for both architectures.
package archtest
