package runner

import (
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// network returns the run's, and makes it if there is none yet: when the run's
// environment is first asked for, or in Start.
func (r *Run) network() (*Network, error) {
	r.making.Lock()
	defer r.making.Unlock()
	if r.net != nil || r.sandbox == nil {
		return r.net, nil
	}
	n, err := r.sandbox.Networks.New(r.sandbox.NetConfig, r.sandbox.Plan.Namespaces.Net)
	if err != nil {
		return nil, err
	}
	r.net = n
	return n, nil
}

// made is the run's network; nil: there is none, or none yet.
func (r *Run) made() *Network {
	r.making.Lock()
	defer r.making.Unlock()
	return r.net
}

func (r *Run) closeNetwork() {
	if n := r.made(); n != nil {
		n.Close()
	}
}

// unserved refuses a command without a goroutine that could serve its network.
func (r *Run) unserved() error {
	return &policy.PolicyError{Field: "Cmd.Cancel", Problem: "is nil, so os/exec starts no goroutine that serves the network while the tool runs", Remedy: "set WaitDelay, leave Cancel as it is, or use this type's Start, Run or CombinedOutput"}
}

// NetworkVariables make programs use what the run has of a network.
func (r *Run) NetworkVariables() []string {
	n, err := r.network()
	if err != nil || n == nil {
		return nil // enter fails with it
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && !Serves(r.sandbox.Policy.Network) {
		return nil // no goroutine serves a proxy that explains
	}
	w := r.sandbox.NetConfig
	place := w.Dir
	if place == "" && w.HasFiles() {
		place = r.own.name()
	}
	return n.Variables(place)
}

// unsecret puts placeholders where what the policy lets pass of the environment has a
// credential's secret: under another name the tool would have it all the same. It
// changes the list.
func (r *Run) unsecret(env []string) []string {
	n, err := r.network()
	if err != nil || n == nil {
		return env // enter fails with the error
	}
	for i, v := range env {
		env[i] = n.Redact(v)
	}
	return env
}
