package callback

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// newAsker makes the asker of a run that ends with the test.
func newAsker(t *testing.T, m *Memory, patience time.Duration) *Asker {
	return &Asker{Ctx: t.Context(), Patience: patience, Most: 100, Memory: m, Run: new(Memory), Spawn: func(f func()) bool { go f(); return true }}
}

func (a *Asker) waiting(same string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.open {
		if q.Same == same {
			n += q.waiting
		}
	}
	return n
}

func question(about, same string, decide func(context.Context) policy.Verdict) Question {
	return Question{About: about, Same: same, Decide: decide}
}

func TestEqualQuestionsAreOne(t *testing.T) {
	var asked, allowed, told atomic.Int32
	answer := make(chan policy.Verdict)
	a := newAsker(t, new(Memory), time.Hour)
	q := question("a.example", "a.example:443", func(context.Context) policy.Verdict { asked.Add(1); return <-answer })
	q.Asked, q.Answered = func() { told.Add(1) }, func(v Answer) {
		if told.Add(1) == 2 && !v.Allow {
			t.Error("the first was answered with yes")
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if v := a.Ask(t.Context(), q); v.Allow && !v.Remembered {
				allowed.Add(1)
			}
		})
	}
	for a.waiting(q.Same) < 20 {
		runtime.Gosched()
	}
	answer <- policy.Verdict{Allow: true}
	all.Wait()
	if asked.Load() != 1 || allowed.Load() != 20 {
		t.Errorf("asked %d times, %d allowed", asked.Load(), allowed.Load())
	}
	go func() { answer <- policy.Verdict{} }()
	if a.Ask(t.Context(), q).Allow || asked.Load() != 2 || told.Load() != 4 {
		t.Error("the answer was kept")
	}
}

// TestAVerdictLastsForWhatItSays: a yes and a no alike, and never beyond the sandbox.
func TestAVerdictLastsForWhatItSays(t *testing.T) {
	for _, test := range []struct {
		lasts                    policy.Lifetime
		sameRun, otherRun, other bool // asked again
	}{
		{policy.Once, true, true, true},
		{policy.Run, false, true, true},
		{policy.Sandbox, false, false, true},
		{200, true, true, true},
	} {
		for _, allow := range []bool{true, false} {
			m := new(Memory)
			run := newAsker(t, m, time.Hour)
			asked := 0
			q := question("h", "h:1", func(context.Context) policy.Verdict {
				asked++
				return policy.Verdict{Allow: allow, Reason: "so", For: test.lasts}
			})
			for _, step := range []struct {
				name string
				a    *Asker
				same string
				want bool // Decide is asked
			}{
				{"the first", run, "h:1", true}, {"again", run, "h:1", test.sameRun}, {"another question", run, "h:2", true},
				{"another run", newAsker(t, m, time.Hour), "h:1", test.otherRun}, {"another sandbox", newAsker(t, new(Memory), time.Hour), "h:1", test.other},
			} {
				before := asked
				q.Same = step.same
				v := step.a.Ask(t.Context(), q)
				if v.Allow != allow || v.Reason != "so" || (asked != before) != step.want || v.Remembered == step.want {
					t.Errorf("for %d, %s: %+v, asked %d times", test.lasts, step.name, v, asked-before)
				}
				want := map[bool]string{true: "Decide", false: map[policy.Lifetime]string{policy.Run: "Decide, for the run", policy.Sandbox: "Decide, for the sandbox"}[test.lasts]}[step.want]
				if v.Rule() != want || !IsByDecide(v.Rule()) {
					t.Errorf("for %d, %s: rule %q", test.lasts, step.name, v.Rule())
				}
			}
		}
	}
	if IsByDecide("decide.example") || IsByDecide("Decide.example") {
		t.Error("an entry is no answer")
	}
}

// TestANoThatLastsIsOneQuestion about a thing, whatever is asked of it; also for what waits for its turn. A yes is to its question.
func TestANoThatLastsIsOneQuestion(t *testing.T) {
	for _, lasts := range []policy.Lifetime{policy.Once, policy.Run, policy.Sandbox} {
		for _, allow := range []bool{true, false} {
			a := newAsker(t, new(Memory), time.Hour)
			var asked atomic.Int32
			first := make(chan bool)
			q := func(same string) Question {
				return Question{About: "h", Same: same, Thing: "h:1", Decide: func(context.Context) policy.Verdict {
					if asked.Add(1) == 1 {
						<-first
					}
					return policy.Verdict{Allow: allow, For: lasts}
				}}
			}
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() { a.Ask(t.Context(), q(fmt.Sprint("h:1 GET /", i))) })
			}
			for i := range 10 {
				for a.waiting(fmt.Sprint("h:1 GET /", i)) == 0 {
					runtime.Gosched()
				}
			}
			close(first)
			all.Wait()
			v := a.Ask(t.Context(), q("h:1 POST /"))
			want := int32(11)
			if !allow && lasts != policy.Once {
				want = 1
			}
			if asked.Load() != want || v.Allow != allow {
				t.Errorf("for the %s, %v: asked %d times, want %d", lasts, allow, asked.Load(), want)
			}
			other := q("h:2")
			if other.Thing = "h:2"; a.Ask(t.Context(), other).Allow != allow || asked.Load() != want+1 {
				t.Errorf("for the %s, %v: another thing is not asked about", lasts, allow)
			}
		}
	}
}

// TestQuestionsAboutOneThingComeOneAfterAnother, of two runs, too; about another thing at the same time.
func TestQuestionsAboutOneThingComeOneAfterAnother(t *testing.T) {
	m := new(Memory)
	one, two := newAsker(t, m, time.Hour), newAsker(t, m, time.Hour)
	began, answer := make(chan string), make(chan policy.Verdict)
	ask := func(a *Asker, about, same string) <-chan Answer {
		got := make(chan Answer, 1)
		go func() {
			got <- a.Ask(t.Context(), question(about, same, func(context.Context) policy.Verdict { began <- same; return <-answer }))
		}()
		return got
	}
	first := ask(one, "h", "h:1")
	if same := <-began; same != "h:1" {
		t.Fatal(same)
	}
	port, run := ask(one, "h", "h:2"), ask(two, "h", "h:1")
	for one.waiting("h:2") == 0 || two.waiting("h:1") == 0 {
		runtime.Gosched()
	}
	other := ask(one, "i", "i:1")
	if same := <-began; same != "i:1" {
		t.Fatalf("%s is asked while another question about its host is open", same)
	}
	answer <- policy.Verdict{Allow: true, For: policy.Sandbox} // one of the two takes it
	answer <- policy.Verdict{Allow: true, For: policy.Sandbox}
	if !(<-first).Allow || !(<-other).Allow {
		t.Error("denied")
	}
	if same := <-began; same != "h:2" {
		t.Errorf("%s is asked, which has been answered for the sandbox", same)
	}
	answer <- policy.Verdict{}
	if (<-port).Allow {
		t.Error("the answer to another question counts")
	}
	if v := <-run; !v.Allow || !v.Remembered {
		t.Errorf("the other run: %+v", v)
	}
	if len(m.busy) != 0 {
		t.Errorf("%d turns are left", len(m.busy))
	}
}

// TestNoAnswerIsADenialThatIsNotRemembered, in whatever way there is none.
func TestNoAnswerIsADenialThatIsNotRemembered(t *testing.T) {
	always := policy.Verdict{Allow: true, For: policy.Sandbox}
	for _, test := range []struct {
		name, want string
		decide     func(context.Context) policy.Verdict
	}{
		{"Decide comes too late", "did not answer within 1ms", func(ctx context.Context) policy.Verdict { <-ctx.Done(); return always }},
		{"Decide panics", "panicked", func(context.Context) policy.Verdict { panic("decide") }},
		{"Decide ends its goroutine", "", func(context.Context) policy.Verdict { runtime.Goexit(); return always }},
	} {
		m := new(Memory)
		a := newAsker(t, m, time.Millisecond)
		if test.want == "" || test.want == "panicked" {
			a.Patience = time.Hour
		}
		if v := a.Ask(t.Context(), question("h", "h:1", test.decide)); v.Allow || !strings.Contains(v.Reason, test.want) {
			t.Errorf("%s: %+v", test.name, v)
		}
		a.Patience = time.Hour
		if v := a.Ask(t.Context(), question("h", "h:1", func(context.Context) policy.Verdict { return always })); !v.Allow || v.Remembered {
			t.Errorf("%s: the question was not asked again: %+v", test.name, v)
		}
	}
}

// TestADecideThatStaysAwayHoldsUpItsOwnQuestionsAlone: and each no longer than Patience.
func TestADecideThatStaysAwayHoldsUpItsOwnQuestionsAlone(t *testing.T) {
	m := new(Memory)
	a := newAsker(t, m, 20*time.Millisecond)
	release := make(chan struct{})
	away := func(context.Context) policy.Verdict {
		<-release
		return policy.Verdict{Allow: true, For: policy.Sandbox}
	}
	if v := a.Ask(t.Context(), question("h", "h:1", away)); v.Allow || !strings.Contains(v.Reason, "did not answer") {
		t.Errorf("%+v", v)
	}
	yes := func(context.Context) policy.Verdict { return policy.Verdict{Allow: true} }
	if v := a.Ask(t.Context(), question("h", "h:2", yes)); v.Allow || !strings.Contains(v.Reason, "another question about it was not answered") {
		t.Errorf("%+v", v)
	}
	a.Patience = time.Hour
	if v := a.Ask(t.Context(), question("i", "i:1", yes)); !v.Allow {
		t.Errorf("%+v", v)
	}
	close(release)
	if v := a.Ask(t.Context(), question("h", "h:1", yes)); !v.Allow || v.Remembered {
		t.Errorf("what came too late: %+v", v)
	}
}

func TestAWaiterLeavesWithItsContextAndTheQuestionWithTheLast(t *testing.T) {
	a := newAsker(t, new(Memory), time.Hour)
	gone, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	began := make(chan struct{})
	go func() { <-began; cancel() }()
	v := a.Ask(gone, question("h", "h:1", func(ctx context.Context) policy.Verdict {
		close(began)
		<-ctx.Done()
		close(ended)
		return policy.Verdict{Allow: true, For: policy.Run}
	}))
	<-ended
	if v.Allow {
		t.Errorf("%+v", v)
	}
	if v := a.Ask(t.Context(), question("h", "h:1", func(context.Context) policy.Verdict { return policy.Verdict{Reason: "no"} })); v.Allow || v.Reason != "no" {
		t.Errorf("a yes that came when all had gone: %+v", v)
	}
}

func TestAMemoryIsBounded(t *testing.T) {
	m := new(Memory)
	a := newAsker(t, m, time.Hour)
	for i := range mostRemembered + 100 {
		for _, lasts := range []policy.Lifetime{policy.Run, policy.Sandbox} {
			name := fmt.Sprintf("%d.%d.example", i, lasts)
			a.Ask(t.Context(), question(name, name, func(context.Context) policy.Verdict { return policy.Verdict{For: lasts} }))
		}
	}
	if len(a.Run.verdicts) != mostRemembered || len(m.verdicts) != mostRemembered || len(m.busy)+len(a.open) != 0 {
		t.Errorf("%d of the run, %d of the sandbox, %d busy, %d open", len(a.Run.verdicts), len(m.verdicts), len(m.busy), len(a.open))
	}
	for name, want := range map[string]bool{"0.1.example": true, "0.2.example": true, "1050.1.example": false} {
		if v := a.Ask(t.Context(), question(name, name, func(context.Context) policy.Verdict { return policy.Verdict{} })); v.Remembered != want {
			t.Errorf("%s: remembered %v", name, v.Remembered)
		}
	}
}

// TestForgottenVerdictsAreAskedForAnew: those of the run and the sandbox, by the run that forgets and no other, and what waits for an answer
// is told. A verdict that comes afterwards on an earlier question does not count either.
func TestForgottenVerdictsAreAskedForAnew(t *testing.T) {
	for _, lasts := range []policy.Lifetime{policy.Run, policy.Sandbox} {
		m := new(Memory)
		a, other := newAsker(t, m, time.Hour), newAsker(t, m, time.Hour)
		asked := 0
		q := question("h", "h:1", func(context.Context) policy.Verdict {
			asked++
			return policy.Verdict{Allow: true, For: lasts}
		})
		a.Ask(t.Context(), q)
		other.Ask(t.Context(), q)
		before := asked
		a.Forget()
		if v := a.Ask(t.Context(), q); v.Remembered || asked != before+1 {
			t.Errorf("for the %s: %+v, asked %d times", lasts, v, asked)
		}
		if v := a.Ask(t.Context(), q); !v.Remembered {
			t.Errorf("for the %s: the second is not remembered", lasts)
		}
		if v := other.Ask(t.Context(), q); !v.Remembered || asked != before+1 {
			t.Errorf("for the %s, the other run: %+v", lasts, v)
		}
		began, answer, left := make(chan bool), make(chan policy.Verdict), make(chan Answer)
		late := question("late", "late:1", func(context.Context) policy.Verdict { began <- true; return <-answer })
		go func() { left <- a.Ask(t.Context(), late) }()
		<-began
		a.Forget()
		if v := <-left; v.Allow || !v.Forgotten {
			t.Errorf("for the %s, what waited: %+v", lasts, v)
		}
		answer <- policy.Verdict{Allow: true, For: lasts}
		go func() { left <- a.Ask(t.Context(), late) }()
		<-began // asked anew, when the call before has returned
		answer <- policy.Verdict{}
		if v := <-left; v.Allow || v.Forgotten {
			t.Errorf("for the %s, asked anew: %+v", lasts, v)
		}
	}
}
