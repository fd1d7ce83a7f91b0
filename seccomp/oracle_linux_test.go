package seccomp

import (
	"math/rand/v2"
	"testing"

	oracle "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/net/bpf"
)

// oracleProgram is what go-seccomp-bpf compiles for this machine's architecture.
func oracleProgram(t *testing.T, p oracle.Policy) Program {
	t.Helper()
	code, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bpf.Assemble(code)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, i := range raw {
		b = instruction{Code: i.Op, JT: i.Jt, JF: i.Jf, K: i.K}.append(b)
	}
	program, err := ParseProgram(b)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Policies of names alone, without argument checks, of at most 200 names so that its jumps stay short, mean the same to go-seccomp-bpf.
func TestNamesAloneMeanTheSameToGoSeccompBPF(t *testing.T) {
	native, err := Native()
	if err != nil {
		t.Skip(err)
	}
	actions := map[Action]oracle.Action{
		Allow: oracle.ActionAllow, Errno(EPERM): oracle.ActionErrno, Log: oracle.ActionLog, KillProcess: oracle.ActionKillProcess, Trap: oracle.ActionTrap,
	}
	choice := []Action{Allow, Errno(EPERM), Log, KillProcess, Trap}
	r := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		f := Filter{Default: choice[r.IntN(len(choice))]}
		policy := oracle.Policy{DefaultAction: actions[f.Default]}
		order := r.Perm(len(table))[:60+r.IntN(140)]
		for len(order) > 0 {
			n := min(len(order), 1+r.IntN(60))
			a := choice[r.IntN(len(choice))]
			var names []string
			for _, i := range order[:n] {
				e := table[i]
				if nr, ok := e.number(native); ok && nr < 460 && e.name != "newfstatat" && e.name != "uprobe" { // names it does not know
					names = append(names, e.name)
				}
			}
			order = order[n:]
			if len(names) > 0 {
				f.Rules = append(f.Rules, Rule{Names: names, Action: a})
				policy.Syscalls = append(policy.Syscalls, oracle.SyscallGroup{Names: names, Action: actions[a]})
			}
		}
		ours, theirs := mustCompile(t, f, native), oracleProgram(t, policy)
		for nr := range uint32(600) {
			c := Call{Arch: native, Nr: nr}
			if got, want := verdict(t, ours, c), verdict(t, theirs, c); got != want {
				t.Fatalf("%v: %v, go-seccomp-bpf says %v", c, got, want)
			}
		}
		if ours.Len() > theirs.Len()+10 && theirs.Len() > 30 {
			t.Logf("%d instructions, go-seccomp-bpf has %d", ours.Len(), theirs.Len())
		}
	}
}
