// Package clientenv is how tools inside a sandbox find the proxy: the environment
// variables that they read, the configuration of ssh, and the relay by which ssh
// connects. It decides nothing: a tool that ignores all of it reaches no host.
//
//	env := clientenv.Variables(clientenv.VariablesOptions{HTTP: addr})
package clientenv
