// Package seatbelt reads the profiles of macOS's sandbox-exec and says what
// they mean, on any system and without applying them:
//
//	p, err := seatbelt.Parse(seatbelt.Source{Name: "agent.sb", Text: text}, seatbelt.Options{
//		Params: map[string]string{"WORKSPACE": "/Users/me/src"},
//	})
//	if err != nil {
//		return err // *seatbelt.Error: unbound variable: setenv at agent.sb, line 5
//	}
//	v := p.Evaluate(seatbelt.Query{Operation: "file-write-create", Path: "/Users/me/src/a"})
//	fmt.Println(v.Allow, v.Why) // true agent.sb:9 allows file-write* with (subpath "/Users/me/src") ...
//
// A profile is a program in a small Scheme, and running it makes rules. Parse
// runs it, within [Limits], and keeps the rules as data: parameters are put in,
// functions are gone, imports are inlined. Evaluate asks those rules.
//
// # A profile's way through the files
//
//	text -> read.go (nodes) -> interp.go, forms.go, functions.go (values)
//	     -> rule.go, filter.go (Rule, Filter) -> lint.go (Warnings), index.go
//	Query -> evaluate.go (the order of precedence) -> index.go, match.go -> Verdict
//
// The data of each are in files of their own: node.go, value.go and machine.go (the interpreter's
// state and its limits), profile.go, ruleset.go, query.go. names.go has the tables of the names that a profile
// can use: the interpreter asks them, and they know every form and function.
// operation.go is the table of operations, kind.go that of filters, regex.go turns a
// profile's regular expressions into Go's, print.go writes a Profile as text again,
// and profiles/ holds our stand-ins for what macOS brings (system.sb, bsd.sb and
// the five named profiles): written for this package, none of them Apple's text.
//
// # Precedence
//
// No macOS was at hand; the order is the one that explains every published
// measurement that was found:
//
//  1. A rule that names the operation itself beats one that names its wildcard
//     parent (file-read-data, file-read*, file*, and at the root default), whatever
//     the order in the profile.
//  2. Of the rules of one operation, one with a filter beats one without.
//  3. Of the filtered rules of one operation, the last that matches wins; so does
//     the last of the unfiltered ones.
//  4. If nothing matches, the parent's rules are asked in the same way, up to default,
//     which is deny when the profile does not say.
//
// Where this order and "the last match wins" would differ, Parse adds a Warning,
// and a Verdict names the rule that the other reading would have taken.
//
// # Decisions
//
//   - An unknown operation is an error, "unbound variable", as it is for
//     sandbox-exec, where operations are variables; Options.NewerOperations makes it
//     a Warning, for profiles that are written for a later system.
//   - A profile without (version 1) is an error; Options.Fragment allows it.
//   - A path filter means the resolved path, byte by byte. A filter that names an
//     alias (/tmp, /var, /etc), is relative, has a trailing slash or . or .. in it
//     can match nothing, and stays in the profile with a Warning.
//   - subpath matches the directory itself and what is below it, by whole names;
//     prefix matches bytes; path-ancestors is every proper ancestor, from / on.
//   - A Query's path has to be resolved (absolute, clean). Any other is denied,
//     and the Verdict says so: an unclean question gets no answer to rely on.
//   - A filter about something that the Query does not tell (an extension, a type of
//     file) does not match; a require-not about it does.
//   - (local ip ..) on an outgoing connection matches whatever the remote end
//     is, since the local end is not bound yet: that is how it leaked elsewhere.
//     Parse warns of it.
//   - Regular expressions are POSIX extended ones, found anywhere in the string. The
//     engine is RE2's: what it cannot do (backreferences) is an error, and so is
//     what has no meaning in POSIX (\d, (?i)): see regex.go.
//
// # Limits
//
// Profiles of Firefox and WebKit say that process-info*, nvram*, iokit-get-properties and
// file-map-executable are not included in (deny default), and start as allowed. Here
// default is the root of all, and the reason of such a verdict says so ([OwnDefault]). A profile
// that means to deny them has to name them.
//
// What is here is a model: it was compared with what others measured, never with a
// kernel. Macros, load, input and output,
// and floating point are not there; a profile that needs them is refused with an error.
// The stand-ins for Apple's imports allow about what those allow to a
// command-line tool, no more. Filters that ask for facts which a Query has no room
// for (entitlements, code signatures) are parsed and match nothing.
package seatbelt
