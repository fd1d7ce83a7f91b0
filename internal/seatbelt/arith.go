package seatbelt

import (
	"math"
	"strconv"
)

func doStringToNumber(m *machine, at Position, args []value) (value, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "string->number", 0, "string")
	}
	base := int64(10)
	if len(args) == 2 {
		if base, ok = args[1].(int64); !ok || base < 2 || base > 36 {
			return nil, wrong(at, "string->number", 1, "a radix")
		}
	}
	n, err := strconv.ParseInt(s, int(base), 64)
	if err != nil {
		return false, nil
	}
	return n, nil
}

func doNumberToString(m *machine, at Position, args []value) (value, error) {
	n, ok := args[0].(int64)
	if !ok {
		return nil, wrong(at, "number->string", 0, "number")
	}
	return strconv.FormatInt(n, 10), nil
}

func numbers(at Position, name string, args []value) ([]int64, error) {
	out := make([]int64, len(args))
	for i, a := range args {
		n, ok := a.(int64)
		if !ok {
			return nil, wrong(at, name, i, "number")
		}
		out[i] = n
	}
	return out, nil
}

func compare(name string, holds func(a, b int64) bool) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		n, err := numbers(at, name, args)
		if err != nil {
			return nil, err
		}
		for i := range n[1:] {
			if !holds(n[i], n[i+1]) {
				return false, nil
			}
		}
		return true, nil
	}
}

func addExact(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func multiplyExact(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	return c, c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

func arithmetic(name string, unit int64, do func(a, b int64) (int64, bool)) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		n, err := numbers(at, name, args)
		if err != nil {
			return nil, err
		}
		sum, ok := unit, true
		for _, x := range n {
			if sum, ok = do(sum, x); !ok {
				return nil, fail(at, "%s: number too large", name)
			}
		}
		return sum, nil
	}
}

func doMinus(m *machine, at Position, args []value) (value, error) {
	n, err := numbers(at, "-", args)
	if err != nil {
		return nil, err
	}
	if len(n) == 1 {
		n = []int64{0, n[0]}
	}
	diff, ok := n[0], true
	for _, x := range n[1:] {
		if x == math.MinInt64 {
			return nil, fail(at, "-: number too large")
		}
		if diff, ok = addExact(diff, -x); !ok {
			return nil, fail(at, "-: number too large")
		}
	}
	return diff, nil
}

func sign(name string, holds func(int64) bool) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		n, ok := args[0].(int64)
		if !ok {
			return nil, wrong(at, name, 0, "number")
		}
		return holds(n), nil
	}
}

// ioctl is a command's number as <sys/ioccom.h> of macOS makes it: the direction,
// the size, a group's letter and a number.
func ioctl(name string, direction int64) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		group, ok := args[0].(string)
		if !ok || len(group) != 1 {
			return nil, wrong(at, name, 0, "string of one character")
		}
		n, err := numbers(at, name, args[1:])
		if err != nil {
			return nil, err
		}
		size := int64(0)
		if len(n) == 2 {
			size = n[1]
		}
		if n[0] < 0 || n[0] > 0xff || size < 0 || size > 0x1fff {
			return nil, fail(at, "%s: out of bounds", name)
		}
		return direction | size<<16 | int64(group[0])<<8 | n[0], nil
	}
}
