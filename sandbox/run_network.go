package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// network returns the run's, and makes it if there is none yet: when the run's
// environment is first asked for, or in Start.
func (r *run) network() (*runner.Network, error) {
	r.making.Lock()
	defer r.making.Unlock()
	if r.net != nil || r.sandbox == nil {
		return r.net, nil
	}
	n, err := r.sandbox.ready.Networks.New(r.sandbox.ready.NetConfig, r.sandbox.ready.Plan.Namespaces.Net)
	if err != nil {
		return nil, err
	}
	r.net = n
	return n, nil
}

// made is the run's network; nil: there is none, or none yet.
func (r *run) made() *runner.Network {
	r.making.Lock()
	defer r.making.Unlock()
	return r.net
}

func (r *run) closeNetwork() {
	if n := r.made(); n != nil {
		n.Close()
	}
}

// unserved refuses a command without a goroutine that could serve its network.
func (r *run) unserved() error {
	return &PolicyError{Field: "Cmd.Cancel", Problem: "is nil, so os/exec starts no goroutine that serves the network while the tool runs", Remedy: "set WaitDelay, leave Cancel as it is, or use this type's Start, Run or CombinedOutput"}
}

// networkVariables make programs use what the run has of a network.
func (r *run) networkVariables() []string {
	n, err := r.network()
	if err != nil || n == nil {
		return nil // enter fails with it
	}
	w := r.sandbox.ready.NetConfig
	place := w.Dir
	if place == "" && w.HasFiles() {
		place = r.ownName()
	}
	return n.Variables(place)
}

// unsecret puts placeholders where what the policy lets pass of the environment has a
// credential's secret: under another name the tool would have it all the same. It
// changes the list.
func (r *run) unsecret(env []string) []string {
	n, err := r.network()
	if err != nil || n == nil {
		return env // enter fails with the error
	}
	for i, v := range env {
		env[i] = n.Redact(v)
	}
	return env
}

// served says what the harness serves of the run's network, and what has passed.
func (r *run) served() (proxied, captured string) {
	if n := r.made(); n != nil {
		return n.Served()
	}
	return "", ""
}

// reportNetwork adds what the run was denied, and what became of its network.
func (r *run) reportNetwork(report *Report) {
	if line := report.Bound(policy.BoundNetwork); (line.State == Held || line.State == Promised) && !r.sandbox.ready.Policy.Network.Proxied() {
		line.Notes = append(line.Notes, "no host can be reached: Network.Hosts names none")
	}
	if n := r.made(); n != nil {
		report.addDenials(n.Summary())
	}
}

// reportEnvironment says which variables of the command's own Env look like secrets.
func (r *run) reportEnvironment(report *Report) {
	line := report.Bound(policy.BoundEnvironment)
	if !r.isWatching() || len(r.secrets) == 0 || line.State == Open {
		return
	}
	line.Lost = append(line.Lost, runner.SecretsPassed(r.secrets))
	if line.State == Held {
		line.State = Weaker
	}
}
