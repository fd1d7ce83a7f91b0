package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// hosts are those that a session has set in the place of the policy's.
type hosts struct {
	setting sync.Mutex // held while they are set, and told of
	mu      sync.Mutex
	lists   []hostList // the last of them
	more    int        // that were before
}

// A hostList was in force from a time on.
type hostList struct {
	from time.Time
	list []string
}

const (
	mostHostLists = 8  // that are remembered, for reports
	mostHosts     = 20 // of one that a report names
)

// SetHosts replaces the hosts that the session's commands can reach. What goes to others has ended when it returns.
func (n *Session) SetHosts(list []string) error {
	if err := n.net.boundless(); err != nil {
		return err
	}
	with, err := n.net.of.policy.WithHosts(list)
	if err != nil {
		return err
	}
	rules, err := hostrules.Compile(with.Hosts, with.Deny)
	if err != nil {
		return err
	}
	h := &n.hosts
	h.setting.Lock()
	defer h.setting.Unlock()
	if over := n.err(nil); over != nil {
		return over
	}
	gateway, err := n.net.makeGateway()
	if err != nil {
		return fmt.Errorf("sandbox: the network's gateway: %w", err)
	}
	gateway.SetRules(rules)
	n.net.opened.Store(len(with.Hosts) > 0)
	before := n.net.of.policy.Hosts
	h.mu.Lock()
	if k := len(h.lists); k > 0 {
		before = h.lists[k-1].list
	}
	if h.lists = append(h.lists, hostList{time.Now(), with.Hosts}); len(h.lists) > mostHostLists {
		h.lists, h.more = slices.Delete(h.lists, 0, 1), h.more+1
	}
	h.mu.Unlock()
	if n.observer.queue != nil {
		n.observer.tell(policy.Event{Kind: policy.EventHosts, Time: time.Now(), Hosts: &policy.Hosts{Now: slices.Clone(with.Hosts), Before: slices.Clone(before)}})
	}
	return nil
}

// boundless is the error of a network whose hosts no proxy decides about; nil: the proxies are there.
func (n *Network) boundless() error {
	bad := &policy.PolicyError{Field: "Network", Problem: "has no proxies, which would decide about hosts", Remedy: "set Network.Explain, or give the session's policy one of Network.Hosts, Decide or Observe"}
	switch {
	case n.of.policy.Host:
		bad.Field, bad.Problem, bad.Remedy = "Network.Host", "shares the harness's network: no host is bounded", "name hosts in Network.Hosts in its place"
		return bad
	case !n.wiring.Proxied && !n.explains:
		return bad
	}
	return nil
}

// notes say which hosts were in force in a time. A zero end is now.
func (h *hosts) notes(from, to time.Time) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range h.lists {
		if i+1 < len(h.lists) && !h.lists[i+1].from.After(from) || !to.IsZero() && l.from.After(to) {
			continue // it was over before, or began afterwards
		}
		named := strings.Join(l.list[:min(len(l.list), mostHosts)], ", ")
		switch more := len(l.list) - mostHosts; {
		case more > 0:
			named += fmt.Sprintf(" and %d more", more)
		case named == "":
			named = "none"
		}
		list = append(list, "hosts since "+l.from.Format(time.RFC3339Nano)+", by Session.SetHosts: "+named)
	}
	if h.more > 0 && len(list) == len(h.lists) && h.lists[0].from.After(from) {
		list = slices.Insert(list, 0, fmt.Sprintf("hosts were set %d times before", h.more))
	}
	return list
}
