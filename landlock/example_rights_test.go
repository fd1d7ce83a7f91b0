package landlock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/landlock"
)

// Rights are chosen one by one where the named groups give too much: here logs
// can be added to and rotated, but not made into anything else.
func ExampleAccessFS() {
	const (
		read    = landlock.FSReadFile | landlock.FSReadDir
		append_ = landlock.FSMakeReg | landlock.FSWriteFile
		rotate  = landlock.FSRemoveFile | landlock.FSTruncate
	)
	r := landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/var/log/tool", Access: read | append_ | rotate}}}
	granted := r.Paths[0].Access
	fmt.Println("lets a program be run:", granted&landlock.FSExecute != 0)
	fmt.Println("lets a link be planted:", granted&landlock.FSMakeSym != 0)
	fmt.Println("more than FSWrite gives:", granted&^(landlock.FSRead|landlock.FSWrite) != 0)
	// Output:
	// lets a program be run: false
	// lets a link be planted: false
	// more than FSWrite gives: false
}

// A name server that may be asked, and one port to serve on; all else is shut.
func ExampleAccessNet() {
	r := landlock.Ruleset{Ports: []landlock.PortRule{
		{Port: 53, Access: landlock.NetConnectSendUDP},
		{Port: 0, Access: landlock.NetBindUDP}, // the port that the question is sent from
		{Port: 8080, Access: landlock.NetBindTCP},
	}}
	var granted landlock.AccessNet
	for _, rule := range r.Ports {
		granted |= rule.Access
	}
	fmt.Println("on no port at all:", landlock.NetAll&^granted)
	// Output: on no port at all: connect_tcp
}

// A tool that has to be able to signal the processes around it.
func ExampleScope() {
	r := landlock.Ruleset{Unscoped: landlock.ScopeSignal}
	fmt.Println("closed:", r.Scoped(), "of", landlock.ScopeAll)
	fmt.Println("abstract sockets are closed:", r.Scoped()&landlock.ScopeAbstractUnixSocket != 0)
	// Output:
	// closed: abstract_unix_socket of abstract_unix_socket|signal
	// abstract sockets are closed: true
}

// A restriction of the network alone leaves files as they are.
func ExampleRuleset_HandledFS() {
	r := landlock.Ruleset{UnhandledFS: landlock.FSAll, Ports: []landlock.PortRule{{Port: 443, Access: landlock.NetConnectTCP}}}
	fmt.Println(r.HandledFS(), "/", r.HandledNet())
	// Output: none / bind_tcp|connect_tcp|bind_udp|connect_send_udp
}

// What a fleet would gain from a newer kernel, by kind.
func ExampleFeature() {
	for _, f := range landlock.Table() {
		if f.ABI < 8 {
			continue
		}
		kind := "file"
		switch {
		case f.Net != 0:
			kind = "network"
		case f.Scope != 0:
			kind = "scope"
		case f.Flag != 0:
			kind = "flag"
		}
		fmt.Printf("Linux %s: %s %s (files: %t)\n", f.Kernel, kind, f.Name(), f.FS != 0)
	}
	// Output:
	// Linux 7.0: flag tsync (files: false)
	// Linux 7.1: file resolve_unix (files: true)
	// Linux 7.2: network bind_udp (files: false)
	// Linux 7.2: network connect_send_udp (files: false)
	// Linux 7.3: flag no_new_privs (files: false)
}

// A ruleset that makes no sense is told by its field.
func ExampleFieldError() {
	err := landlock.Ruleset{Ports: []landlock.PortRule{{Port: 80}}}.Validate()
	var wrong *landlock.FieldError
	if errors.As(err, &wrong) {
		fmt.Printf("%s is %q: %s\n", wrong.Field, wrong.Value, wrong.Reason)
	}
	// Output: Ports[0].Access is "none": a rule must grant something
}

// Each way in which a ruleset can fail on this machine has a type of its own.
func ExampleRuleError() {
	missing := filepath.Join(os.TempDir(), "holdfast-no-such-directory")
	r := landlock.Ruleset{Paths: []landlock.PathRule{{Path: missing, Access: landlock.FSRead}}}
	abi, err := landlock.ABI()
	if err == nil {
		r, _, err = landlock.Downgrade(r, abi)
	}
	if err == nil {
		_, err = landlock.Build(r)
	}
	var (
		rule  *landlock.RuleError
		step  *landlock.StepError
		no    *landlock.UnsupportedError
		probe *landlock.ProbeError
	)
	switch {
	case errors.As(err, &rule): // the policy names what this machine lacks
		_, _ = rule.Rule, rule.Op
		fmt.Println("the path is missing:", errors.Is(rule.Err, os.ErrNotExist))
	case errors.As(err, &step): // the kernel refused something else
		fmt.Println(step.Step, step.Err)
	case errors.As(err, &no): // too old a kernel, and for what
		fmt.Println(no.ABI, no.Lost, no.Err)
	case errors.As(err, &probe): // something hides it
		fmt.Println(probe.Reason, probe.Remedy, probe.Err)
	}
}
