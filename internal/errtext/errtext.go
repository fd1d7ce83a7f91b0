// Package errtext has what the texts of errors are made of: the name of one element of a
// list, a value cut to a readable length, and text of a peer's or a tool's that a terminal can show.
package errtext

import "strconv"

// Indexed names one element of a list.
func Indexed(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// Shorten keeps an error readable when the value is a page long.
func Shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
