// Package pathrule judges and compares the paths of a policy as text: which list a path
// stands in, whether it may stand there, and which of two contains the other. It
// looks at no file.
package pathrule
