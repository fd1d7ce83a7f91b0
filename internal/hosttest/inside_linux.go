package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A result is what a harness on a host says of one policy.
type result struct {
	Error  string                         // New's; "": it did not refuse
	States map[policy.Bound]sandbox.State // bound by bound
	Acts   int                            // that were tried
	Went   []string                       // acts that went through while the report owns up to them
	False  []string                       // acts that went through while their bound is said to be held
	Work   map[string]string              // works by name; "": it functions
	Start  float64                        // the fastest of some starts, in ms: the others tell of what else the machine does
}

// An account is what it says of its host.
type account struct {
	Kernel, Runtime string
	Ways            []host.Way
	Default, May    *result  // May: only where the default is refused
	Control         []string // acts that do not go through without a sandbox either
	Fatal           string
}

// inside is a harness on a host. It prints its account.
func inside(args []string) error {
	f := sandbox.Probe()
	a := account{Kernel: f.Kernel, Runtime: string(f.Around.Runtime), Ways: f.Ways()}
	err := a.fill(args)
	if err != nil {
		a.Fatal = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func (a *account) fill(args []string) error {
	dir, long := args[0], slices.Contains(args, "long")
	var err error
	if a.Default, err = judge(dir, long, func(p sandbox.Policy) sandbox.Policy { return p }); err != nil {
		return err
	}
	if a.Default.Error != "" {
		if a.May, err = judge(dir, long, sandbox.Policy.InContainer); err != nil {
			return err
		}
	}
	if slices.Contains(args, "control") {
		a.Control, err = control(dir)
	}
	return err
}

// judge makes a scene, has a sandbox's tool try the acts and do the work, and holds what went through against the report.
func judge(dir string, long bool, change func(sandbox.Policy) sandbox.Policy) (*result, error) {
	s, err := newStage(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.GVisor = sandbox.Probe().Around.Runtime == host.GVisor
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := sandbox.Workspace(s.WS)
	p.Files.Read = append(p.Files.Read, exe)
	p.Env.Pass = append(p.Env.Pass, sceneVariable, portVariable)
	os.Setenv(sceneVariable, s.environ())
	p = change(p)
	box, err := sandbox.New(p)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, fmt.Errorf("the error of New is no UnsupportedError: %w", err)
		}
		return &result{Error: err.Error()}, nil
	}
	defer box.Close()
	r := &result{Work: map[string]string{}, States: map[policy.Bound]sandbox.State{}}
	command := func(arg ...string) *sandbox.Cmd {
		c := box.Command(exe, append([]string{"tool"}, arg...)...)
		c.Dir, c.Stderr = s.WS, os.Stderr
		return c
	}
	did, report, err := tried(command)
	if err != nil {
		return nil, err
	}
	r.hold(s, did, report)
	for range 9 {
		began := time.Now()
		if err := command("nop").Run(); err != nil {
			return nil, err
		}
		if took := float64(time.Since(began).Microseconds()) / 1000; r.Start == 0 || took < r.Start {
			r.Start = took
		}
	}
	return r, r.work(p, exe, s.WS, long, command)
}

// tried has tools try all acts, and returns which the tools say went through. A tool that dies is followed by another.
func tried(command func(arg ...string) *sandbox.Cmd) (did map[int]bool, report *sandbox.Report, err error) {
	did = map[int]bool{}
	for next := 0; next < len(acts()); next++ {
		c := command("acts", strconv.Itoa(next))
		out, err := c.Output()
		last := next - 1
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) < 1 {
				continue
			}
			if last, err = strconv.Atoi(f[0]); err != nil {
				return nil, nil, fmt.Errorf("the tool printed %q", line)
			}
			did[last] = len(f) > 1 && f[1] == "did"
		}
		report = c.Report()
		if last < next {
			return nil, nil, fmt.Errorf("the tool tried nothing: %w", err)
		}
		next = last
	}
	return did, report, nil
}

// hold holds what went through against the report.
func (r *result) hold(s *stage, did map[int]bool, report *sandbox.Report) {
	lost := map[policy.Bound]string{}
	for _, b := range report.Bounds {
		r.States[b.Bound] = b.State
		lost[b.Bound] = strings.Join(b.Lost, "\n")
	}
	for i, a := range acts() {
		r.Acts++
		through := did[i]
		if a.seen != nil {
			through = a.seen(s)
		}
		if !through {
			continue
		}
		state := r.States[a.bound]
		if state == sandbox.Absent || state == sandbox.Open || state == sandbox.Weaker && a.owned != "" && strings.Contains(lost[a.bound], a.owned) {
			r.Went = append(r.Went, a.name)
			continue
		}
		r.False = append(r.False, fmt.Sprintf("%s (%s %s)", a.name, a.bound, state))
	}
}

// work does the works, the long ones where they are asked for.
func (r *result) work(p sandbox.Policy, exe, dir string, long bool, command func(arg ...string) *sandbox.Cmd) error {
	for _, w := range works {
		if _, err := exec.LookPath(w.needs); w.long && !long || w.needs != "" && err != nil {
			continue
		}
		c := command("work", w.name)
		if w.serve != nil {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			p := p
			w.serve(l, &p)
			os.Setenv(portVariable, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
			box, err := sandbox.New(p)
			if err != nil {
				r.Work[w.name] = err.Error()
				continue
			}
			defer box.Close()
			c = box.Command(exe, "tool", "work", w.name)
			c.Dir = dir
		}
		c.Stderr = nil
		out, err := c.CombinedOutput()
		r.Work[w.name] = ""
		if err != nil {
			r.Work[w.name] = fmt.Sprintf("%v: %s", err, out)
		}
	}
	return nil
}

// control has this program try the acts without a sandbox: an act that does not go through then shows nothing.
func control(dir string) ([]string, error) {
	s, err := newStage(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(exe, "tool", "acts", "0")
	c.Dir, c.Stderr = s.WS, os.Stderr
	c.Env = append(os.Environ(), sceneVariable+"="+s.environ())
	out, err := c.Output()
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	var not []string
	for i, a := range acts() {
		through := i < len(lines) && strings.HasSuffix(lines[i], " did")
		if a.seen != nil {
			through = a.seen(s)
		}
		if !through {
			not = append(not, a.name+": "+lines[i])
		}
	}
	return not, nil
}
