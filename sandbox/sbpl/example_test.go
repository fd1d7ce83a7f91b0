package sbpl_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

const workspace = `(version 1)
(deny default)
(allow process-exec process-fork (with no-log))
(allow file-read*)
(allow file-write* (subpath (param "WS")))
(allow mach-lookup (global-name "com.apple.trustd.agent"))
(deny file-read-data (regex #"^/etc/.*-key$"))
`

// A profile is read, and asked what it says.
func ExampleParse() {
	p, err := sbpl.Parse("agent.sb", workspace, map[string]string{"WS": "/src/project"})
	if err != nil {
		log.Fatal(err)
	}
	v := p.Evaluate("file-write-create", "/src/project/a.go")
	fmt.Println(v.Allow, v.At, v.Text)
	v = p.Evaluate("file-write-create", "/src/other/a.go")
	fmt.Println(v.Allow, v.At, v.Text)
	fmt.Println(len(p.Warnings()), "warnings")
	// Output:
	// true agent.sb:5 (allow file-write* (subpath "/src/project"))
	// false agent.sb:2 (deny default)
	// 0 warnings
}

// What is wrong with a text is said as sandbox-exec says it.
func ExampleError() {
	_, err := sbpl.Parse("agent.sb", "(version 1)\n(deny default)\n(allow file-raed*)\n", nil)
	var bad *sbpl.Error
	if errors.As(err, &bad) {
		fmt.Println(bad.Name, bad.Line, bad.Column > 0, bad.Message)
	}
	// Output: agent.sb 3 true unbound variable: file-raed*
}

// The profiles that sandbox-exec -n takes.
func ExampleNamed() {
	fmt.Println(sbpl.Names())
	p, err := sbpl.Named("no-network", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Evaluate("network-outbound", "localhost:80").Allow, p.Evaluate("file-write-create", "/tmp/a").Allow)
	// Output:
	// [no-internet no-network no-write no-write-except-temporary pure-computation]
	// false true
}

// A policy is made of a profile, and runs a command; the report carries how each
// rule is held.
func ExampleProfile_Policy() {
	p, err := sbpl.Parse("agent.sb", workspace, map[string]string{"WS": "/src/project"})
	if err != nil {
		log.Fatal(err)
	}
	policy, rules, err := p.Policy(sbpl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rules {
		switch r.Class {
		case sbpl.Exact:
		case sbpl.Vacuous:
			fmt.Fprintln(os.Stderr, r.At, r.Text, r.Why)
		case sbpl.Approximate:
			for _, d := range r.Differences {
				fmt.Fprintln(os.Stderr, r.At, d.Operations, d.Toward, d.Why)
			}
		}
	}
	s, err := sandbox.New(policy)
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("make", "test")
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cmd.Report())
}

// A strict compilation refuses what would be held less than it says.
func ExampleOptions() {
	p, err := sbpl.Parse("agent.sb", workspace, map[string]string{"WS": "/src/project"})
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = p.Policy(sbpl.Options{Strict: true})
	var wider *sbpl.WiderError
	if errors.As(err, &wider) {
		for _, r := range wider.Rules {
			fmt.Println(r.At, r.Is(sbpl.Wider), r.Is(sbpl.Own), r.Is(sbpl.Narrower), r.Differs("file-read-data") != nil)
		}
	}
	// Output: agent.sb:7 true false false true
}

// Here is the profile as this host has its paths: what an answer of it says, the
// policy holds, as far as its rule's class says.
func ExampleProfile_Here() {
	p, err := sbpl.Parse("agent.sb", `(version 1)(deny default)(allow file-read* (subpath "/private/tmp"))`, nil)
	if err != nil {
		log.Fatal(err)
	}
	here, err := p.Here()
	if err != nil {
		log.Fatal(err)
	}
	v := here.Evaluate("file-read-data", "/tmp/a")
	_, rules, err := p.Policy(sbpl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(os.Stderr, v.Allow, v.Why, rules[v.Index].Class)
}

// What a rule is held as, by hand.
func ExampleRule() {
	difference := sbpl.Difference{Operations: []string{"network-bind"}, Toward: sbpl.Own, Why: "an address of the sandbox's own network can be bound"}
	rule := sbpl.Rule{At: "agent.sb:2", Text: "(deny default)", Class: sbpl.Class("approximate"), Differences: []sbpl.Difference{difference}}
	fmt.Println(rule)
	fmt.Println(rule.Differs("network-bind").Toward == sbpl.Toward("own"), rule.Differs("network-outbound") == nil)
	var none sbpl.Verdict // denies
	fmt.Println(none.Allow)
	// Output:
	// agent.sb:2 (deny default): approximate: own for network-bind: an address of the sandbox's own network can be bound
	// true true
	// false
}
