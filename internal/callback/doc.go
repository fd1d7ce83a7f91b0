// Package callback calls the functions of a policy: the Decide of hosts and that of files, Lookup and Observe. Their author is the harness's, who may
// let them panic, wait for a person, or never return; a run must not stand still for it.
//
//	a := callback.Asker{Ctx: ctx, Spawn: spawn, Patience: time.Minute, Most: 64, Memory: memory}
//	answer := a.Ask(ctx, callback.Question{About: "a.example", Same: "a.example:443", Decide: func(ctx context.Context) policy.Verdict {...}})
//
// An Asker (ask.go) is one run's. Equal questions are one, and different ones about the same thing are asked one after
// another. A verdict is remembered (memory.go) for as long as its For says: by the run's own Memory, or by that of the
// sandbox, which its runs share. Only a verdict that came in time is.
//
// A Queue (queue.go) tells an Observe what happens, in order, in a goroutine that begins with the first event.
//
// # Bounds
//
//   - A caller of Ask waits no longer than its context, twice Patience (for its turn, then for the answer) or the run.
//   - Most calls of Decide are open at one time, those that ignore their context included.
//   - A thing whose Decide does not return is asked about no more: further questions about it are denied after Patience.
//   - A Memory keeps a thousand verdicts, by the hash of the question. What it has no room for is asked again.
//   - A Queue holds a thousand events, and counts those that it had no room for.
package callback
