package seatbelt

func wrong(at Position, name string, i int, want string) error {
	return fail(at, "%s: argument %d must be: %s", name, i+1, want)
}

func is(test func(value) bool) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) { return test(args[0]), nil }
}

func isA[T value](m *machine, at Position, args []value) (value, error) {
	_, ok := args[0].(T)
	return ok, nil
}

func onString(name string, do func(string) value) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, wrong(at, name, 0, "string")
		}
		v := do(s)
		if t, ok := v.(string); ok {
			return v, m.fits(t, at)
		}
		return v, m.spend(len(s)/8, at)
	}
}

// doNothing is for what changes the system's reports only.
func doNothing(*machine, Position, []value) (value, error) { return unspecified{}, nil }
