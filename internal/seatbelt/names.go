package seatbelt

func init() {
	specialForms = map[string]func(m *machine, s *scope, args []node) (value, error){
		"define":      formDefine,
		"define-once": formDefineOnce,
		"set!":        formSet,
		"lambda":      formLambda,
		"let":         formLet,
		"let*":        formLetStar,
		"letrec":      formLetrec,
		"letrec*":     formLetrec,
		"if":          formIf,
		"cond":        formCond,
		"case":        formCase,
		"when":        formWhen,
		"unless":      formUnless,
		"begin":       formBegin,
		"and":         formAnd,
		"or":          formOr,
		"quote":       formQuote,
		"quasiquote":  formQuasiquote,
		"eval":        formEval,
		"with":        formWith,
		"with-filter": formWithFilter,
		"remote":      endpointForm("remote"),
		"to":          endpointForm("remote"), // the names of 10.5
		"from":        endpointForm("remote"),
		"local":       endpointForm("local"),
		"debug":       formDebug,
		"version":     formVersion,
	}
	for kind, k := range kinds {
		if k.constants {
			specialForms[kind] = constantForm(kind)
		}
	}
}

func init() {
	builtins = map[string]*builtin{}
	for _, list := range [][]*builtin{profileFunctions(), stringFunctions(), kindFunctions(), numberFunctions(), listFunctions()} {
		for _, b := range list {
			builtins[b.name] = b
		}
	}
	for name, k := range kinds {
		if k.how != combined && k.how != endpointIs {
			builtins[name] = filterBuiltin(name)
		}
	}
}

// profileFunctions make rules, and speak of the profile.
func profileFunctions() []*builtin {
	return []*builtin{
		ruleBuiltin(Allow), ruleBuiltin(Deny),
		combine("require-all", 1, -1), combine("require-any", 1, -1), combine("require-not", 1, 1),
		{"import", 1, 1, doImport},
		{"param", 1, 1, doParam},
		{"defined?", 1, 1, doDefined},
		{"trace", 1, 1, doNothing}, {"disable-callouts", 0, 0, doNothing}, {"disable-full-symbolication", 0, 0, doNothing},
		{"error", 0, -1, doError},
	}
}

// stringFunctions are about strings, their characters and symbols.
func stringFunctions() []*builtin {
	return []*builtin{
		{"regex-quote", 1, 1, onString("regex-quote", func(s string) value { return quoteRegexp(s) })},
		{"string-append", 0, -1, doAppendStrings},
		{"substring", 2, 3, doSubstring},
		{"string=?", 2, -1, doSameStrings},
		{"string-length", 1, 1, onString("string-length", func(s string) value { return int64(len(s)) })},
		{"string-ref", 2, 2, doStringRef},
		{"string->list", 1, 1, doStringToList},
		{"list->string", 1, 1, onList("list->string", doListToString)},
		{"string", 0, -1, doListToString},
		{"char=?", 2, -1, doSameChars},
		{"string->number", 1, 2, doStringToNumber},
		{"number->string", 1, 1, doNumberToString},
		{"string->symbol", 1, 1, onString("string->symbol", func(s string) value { return symbol(s) })},
		{"symbol->string", 1, 1, doSymbolToString},
	}
}

// kindFunctions ask of what kind a value is, and whether two are the same.
func kindFunctions() []*builtin {
	return []*builtin{
		{"string?", 1, 1, isA[string]},
		{"char?", 1, 1, isA[char]},
		{"symbol?", 1, 1, isA[symbol]},
		{"number?", 1, 1, isA[int64]},
		{"integer?", 1, 1, isA[int64]},
		{"boolean?", 1, 1, isA[bool]},
		{"procedure?", 1, 1, is(func(v value) bool { return kindOf(v) == "a procedure" })},
		{"null?", 1, 1, isA[null]},
		{"pair?", 1, 1, isA[*pair]},
		{"list?", 1, 1, doIsList},
		{"not", 1, 1, is(func(v value) bool { return !truth(v) })},
		{"eq?", 2, 2, doSame}, {"eqv?", 2, 2, doSame}, {"equal?", 2, 2, doEqual},
	}
}

// numberFunctions compare and reckon; the requests of ioctl are numbers too.
func numberFunctions() []*builtin {
	return []*builtin{
		{"=", 1, -1, compare("=", func(a, b int64) bool { return a == b })},
		{"<", 1, -1, compare("<", func(a, b int64) bool { return a < b })},
		{">", 1, -1, compare(">", func(a, b int64) bool { return a > b })},
		{"<=", 1, -1, compare("<=", func(a, b int64) bool { return a <= b })},
		{">=", 1, -1, compare(">=", func(a, b int64) bool { return a >= b })},
		{"zero?", 1, 1, sign("zero?", func(n int64) bool { return n == 0 })},
		{"positive?", 1, 1, sign("positive?", func(n int64) bool { return n > 0 })},
		{"negative?", 1, 1, sign("negative?", func(n int64) bool { return n < 0 })},
		{"+", 0, -1, arithmetic("+", 0, addExact)},
		{"*", 0, -1, arithmetic("*", 1, multiplyExact)},
		{"-", 1, -1, doMinus},
		{"_IO", 2, 2, ioctl("_IO", 0x20000000)}, {"_IOR", 3, 3, ioctl("_IOR", 0x40000000)},
		{"_IOW", 3, 3, ioctl("_IOW", 0x80000000)}, {"_IOWR", 3, 3, ioctl("_IOWR", 0xc0000000)},
	}
}

// listFunctions make lists, take them apart, and do something with each element.
func listFunctions() []*builtin {
	return []*builtin{
		{"cons", 2, 2, doCons},
		{"car", 1, 1, part("car", "a")}, {"cdr", 1, 1, part("cdr", "d")}, {"cadr", 1, 1, part("cadr", "da")},
		{"cddr", 1, 1, part("cddr", "dd")}, {"caar", 1, 1, part("caar", "aa")}, {"caddr", 1, 1, part("caddr", "dda")},
		{"list", 0, -1, func(m *machine, at Position, args []value) (value, error) { return m.list(args, at) }},
		{"length", 1, 1, onList("length", func(m *machine, at Position, l []value) (value, error) { return int64(len(l)), nil })},
		{"reverse", 1, 1, onList("reverse", doReverse)},
		{"append", 0, -1, doAppend},
		{"map", 2, -1, doMap}, {"for-each", 2, -1, doForEach}, {"apply", 2, -1, doApply},
		{"member", 2, 2, doMember}, {"memq", 2, 2, doMember}, {"memv", 2, 2, doMember},
		{"assoc", 2, 2, doAssoc}, {"assq", 2, 2, doAssoc}, {"assv", 2, 2, doAssoc},
	}
}
