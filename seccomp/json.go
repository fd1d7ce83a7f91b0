package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// UnmarshalJSON reads a filter, strictly: names that a Filter, Rule or Arg does not have, or
// that differ in case or come twice, null, and whatever Validate refuses are errors. {} is the
// zero Filter.
//
//	{"default": "errno(EPERM)", "rules": [
//	  {"names": ["ioctl"], "action": "errno(EACCES)", "args": [{"index": 1, "value": 21522}], "reason": "no TIOCSTI"},
//	  {"names": ["ioctl", "read"], "action": "allow"}]}
func (f *Filter) UnmarshalJSON(data []byte) error {
	if err := strictKeys(data); err != nil {
		return err
	}
	type plain Filter // without this method
	var out plain
	if err := json.Unmarshal(data, &out); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return e
		}
		return &Error{Field: "JSON", Detail: err.Error(), Err: ErrInvalid}
	}
	if err := Filter(out).Validate(); err != nil {
		return err
	}
	*f = Filter(out)
	return nil
}

// keysAt are the keys of the objects at each depth of nesting, arrays counted: a filter, its rules, their argument checks.
var keysAt = [...][]string{
	1: {"default", "unknown", "rules"},
	3: {"names", "action", "args", "reason"},
	5: {"index", "width", "op", "mask", "value"},
}

// strictKeys refuses what package encoding/json lets pass: unknown keys, keys in another case, keys that come twice, null.
func strictKeys(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	var seen [][]string // the keys met so far in every open object; nil for an array
	key := true         // whether a string is a key, in an object
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Field: "JSON", Detail: err.Error(), Err: ErrInvalid}
		}
		depth := len(seen)
		inObject := depth > 0 && seen[depth-1] != nil
		switch v := t.(type) {
		case json.Delim:
			switch v {
			case '{':
				seen = append(seen, []string{})
			case '[':
				seen = append(seen, nil)
			default:
				seen = seen[:depth-1]
			}
			key = true
			continue
		case nil:
			return &Error{Field: "JSON", Detail: "null", Err: ErrInvalid}
		case string:
			if inObject && key {
				if depth >= len(keysAt) || !slices.Contains(keysAt[depth], v) {
					return &Error{Field: "JSON", Detail: "unknown name " + strconv.Quote(v), Err: ErrInvalid}
				}
				if slices.Contains(seen[depth-1], v) {
					return &Error{Field: "JSON", Detail: fmt.Sprintf("%q twice in one object", v), Err: ErrInvalid}
				}
				seen[depth-1] = append(seen[depth-1], v)
				key = false
				continue
			}
		}
		key = true
	}
}
