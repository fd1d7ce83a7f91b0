// Package testrunner has no code of its own: it shows how a test runs programs
// that was not reviewed, here students' submissions in testdata. The task was to
// read two numbers and print their sum.
//
// Each submission is compiled in a workspace of its own, since a compiler can be
// made to do much, and then runs where there is nothing but itself: no other
// file, no network, so much memory, so much time.
//
//	go test -v ./examples/testrunner
package testrunner
