//go:build !linux

package function

// dispatch has nothing to do: no process is started for a function.
func dispatch(string, Body) {}
