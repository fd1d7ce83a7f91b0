package sandbox

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/egress/agent"
)

// An agentFilter speaks with one connection of the tool's for one to the agent.
type agentFilter func(inside, outside net.Conn, refused func(string)) error

func filterSSH(inside, outside net.Conn, refused func(string)) error {
	return agent.SSH(inside, outside, agent.SSHOptions{Refused: refused})
}

func filterGPG(inside, outside net.Conn, refused func(string)) error {
	return agent.GPG(inside, outside, agent.GPGOptions{Refused: refused})
}

// mostAgents bounds the connections to one agent at one time.
const mostAgents = 64

// serveAgent connects what comes to l with the agent at socket, through a filter,
// until the outlet ends.
func (o *outlet) serveAgent(l net.Listener, what, socket string, filter agentFilter) error {
	ctx := o.ctx
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, mostAgents)
	for {
		inside, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
		default:
			inside.Close()
			continue
		}
		all.Go(func() {
			defer func() { <-room }()
			defer inside.Close()
			defer context.AfterFunc(ctx, func() { inside.Close() })()
			outside, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "unix", socket)
			if err != nil {
				return
			}
			defer outside.Close()
			defer context.AfterFunc(ctx, func() { outside.Close() })()
			filter(inside, outside, func(message string) {
				o.deny(Violation{Time: time.Now(), Protocol: what, Host: message, Why: "the agent is asked for signatures alone"}, nil)
			})
		})
	}
}
