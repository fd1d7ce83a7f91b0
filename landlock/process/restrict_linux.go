//go:build linux && (amd64 || arm64)

package process

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	golandlock "github.com/landlock-lsm/go-landlock/landlock"

	"github.com/holdfast-dev/holdfast/landlock"
)

// Restrict puts r on every thread of the process, with no_new_privs, and then tries on several threads something that r
// forbids. There is no way back, and what is started later is restricted too.
//
// Restrict is strict, like [landlock.Build]: what this kernel cannot hold whole is a
// [*landlock.UnsupportedError] with what would be lost, and nothing is restricted. A path that
// does not exist is a [*landlock.RuleError]. A [*CheckError] without an Act is a ruleset that
// cannot be checked, and nothing is restricted; with an Act, go-landlock reported success and
// the kernel let a thread do what r forbids, and the process should end. go-landlock takes a
// kernel of ABI 6 or more with erratum 2 unfixed (see [landlock.FixedErrata]) for one of ABI 5
// and refuses scopes there. Other errors are go-landlock's, and wrap the system call's error
// where there is one.
func Restrict(r landlock.Ruleset) error {
	abi, err := landlock.ABI()
	if err != nil {
		return err
	}
	if err := r.HeldBy(abi); err != nil {
		return err
	}
	if err := usable(abi, tsyncOnly); err != nil {
		return err
	}
	rules, err := rulesOf(r)
	if err != nil {
		return err
	}
	p, err := findProbe(r)
	if err != nil {
		return err
	}
	defer p.close()
	threads := countThreads()
	if err := configOf(r).Restrict(rules...); err != nil {
		return fmt.Errorf("landlock: restrict the process: %w", err)
	}
	return onThreads(threads, p.check)
}

// configOf asks go-landlock for exactly what r handles. Without BestEffort it does that or returns an error.
func configOf(r landlock.Ruleset) golandlock.Config {
	return golandlock.Config{
		HandledAccessFS:  golandlock.AccessFSSet(r.HandledFS()),
		HandledAccessNet: golandlock.AccessNetSet(r.HandledNet()),
		Scoped:           golandlock.ScopedSet(r.Scoped()),
	}
}

func rulesOf(r landlock.Ruleset) ([]golandlock.Rule, error) {
	var rules []golandlock.Rule
	for _, rule := range r.Paths {
		access := rule.Access & r.HandledFS()
		if access == 0 {
			continue
		}
		info, err := os.Stat(rule.Path)
		if err != nil {
			return nil, &landlock.RuleError{Rule: rule.String(), Op: "stat", Err: err}
		}
		if !info.IsDir() {
			if access = access.ForFile(); access == 0 {
				return nil, &landlock.RuleError{Rule: rule.String(), Op: "stat", Err: errNotDirectory}
			}
		}
		rules = append(rules, golandlock.PathAccess(golandlock.AccessFSSet(access), rule.Path))
	}
	for _, rule := range r.Ports {
		rules = append(rules, portRules(rule.Port, rule.Access&r.HandledNet())...)
	}
	return rules, nil
}

func portRules(port uint16, access landlock.AccessNet) []golandlock.Rule {
	var rules []golandlock.Rule
	for _, kind := range []struct {
		right landlock.AccessNet
		rule  func(uint16) golandlock.NetRule
	}{
		{landlock.NetBindTCP, golandlock.BindTCP}, {landlock.NetConnectTCP, golandlock.ConnectTCP},
		{landlock.NetBindUDP, golandlock.BindUDP}, {landlock.NetConnectSendUDP, golandlock.ConnectSendUDP},
	} {
		if access&kind.right != 0 {
			rules = append(rules, kind.rule(port))
		}
	}
	return rules
}

// countThreads returns how many threads to check: those there are, but not more than a program of ordinary size has.
func countThreads() int {
	const most = 32
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return most
	}
	return min(max(len(tasks), 2), most)
}

// onThreads runs check on n different threads at once and returns the first error. Each
// goroutine holds its thread until all have one, and threads that idle are taken before new
// ones are made.
func onThreads(n int, check func() error) error {
	errs := make(chan error, n)
	var ready sync.WaitGroup
	ready.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
			errs <- check()
		}()
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
