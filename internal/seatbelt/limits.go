package seatbelt

// Limits bounds what reading a profile may cost, and with it what asking it
// may. A field that is zero or negative has the default.
type Limits struct {
	Bytes   int // of text, imports included: 16 MiB
	Depth   int // of nested forms, of calls, and of filters within filters: 512
	Steps   int // of the interpreter; building data counts too: 25,000,000
	Rules   int // that the profile makes: 250,000
	String  int // bytes of one string: 1 MiB
	Regexp  int // instructions of one regular expression, about: 20,000
	Regexps int // instructions of all of them, about: 1,000,000
	Imports int // import forms that are run: 256
	Warning int // warnings that are kept: 200
}

func (l Limits) orDefaults() Limits {
	for _, f := range []struct {
		field *int
		zero  int
	}{
		{&l.Bytes, 16 << 20}, {&l.Depth, 512}, {&l.Steps, 25_000_000}, {&l.Rules, 250_000}, {&l.String, 1 << 20},
		{&l.Regexp, 20_000}, {&l.Regexps, 1_000_000}, {&l.Imports, 256}, {&l.Warning, 200},
	} {
		if *f.field <= 0 {
			*f.field = f.zero
		}
	}
	return l
}
