package stage

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

func tcpAt(addr string, slot int) plan.Listen {
	return plan.Listen{Network: "tcp4", Addr: netip.MustParseAddrPort(addr), Slot: slot}
}

// TestWhatCannotBeListenedAtIsNotCompiled: before anything runs, and above all
// never a listener in the host's network.
func TestWhatCannotBeListenedAtIsNotCompiled(t *testing.T) {
	at := func(network, addr string) plan.Action {
		return plan.Listen{Network: network, Addr: netip.MustParseAddrPort(addr)}
	}
	unix := func(p string) plan.Action { return plan.Listen{Network: "unix", Path: p} }
	long := string(make([]byte, 200))
	tests := []struct {
		name   string
		host   bool // there is no network namespace
		before []plan.Action
		do     plan.Action
		ok     bool
		is     error
	}{
		{"a port", false, []plan.Action{plan.Loopback{}}, at("tcp4", "127.0.0.1:1"), true, nil},
		{"a port, in the namespace that init is cloned into", false, []plan.Action{plan.Loopback{Here: true}}, at("tcp4", "127.0.0.1:1"), true, nil},
		{"a port of IPv6", false, []plan.Action{plan.Loopback{}}, at("tcp6", "[::1]:1"), true, nil},
		{"a port of UDP", false, []plan.Action{plan.Loopback{}}, at("udp4", "127.0.0.1:53"), true, nil},
		{"a port before the namespace is entered", false, nil, at("tcp4", "127.0.0.1:1"), false, errNotInside},
		{"a port of the host", true, nil, at("tcp4", "127.0.0.1:1"), false, errNotInside},
		{"a port of the host, where init's lo is the host's", true, []plan.Action{plan.Loopback{Here: true}}, at("tcp4", "127.0.0.1:1"), false, errNotInside},
		{"an address of IPv6 as one of IPv4", false, []plan.Action{plan.Loopback{}}, at("tcp4", "[::1]:1"), false, nil},
		{"an address of IPv4 as one of IPv6", false, []plan.Action{plan.Loopback{}}, at("tcp6", "127.0.0.1:1"), false, nil},
		{"an address of IPv4 inside one of IPv6", false, []plan.Action{plan.Loopback{}}, at("tcp6", "[::ffff:127.0.0.1]:1"), false, nil},
		{"another protocol", false, []plan.Action{plan.Loopback{}}, at("raw", "127.0.0.1:1"), false, nil},
		{"no address", false, []plan.Action{plan.Loopback{}}, plan.Listen{Network: "tcp4"}, false, nil},
		{"a slot that there is not", false, []plan.Action{plan.Loopback{}}, tcpAt("127.0.0.1:1", plan.MaxSlots), false, nil},
		{"a slot below all", false, []plan.Action{plan.Loopback{}}, tcpAt("127.0.0.1:1", -1), false, nil},
		{"a slot twice", false, []plan.Action{plan.Loopback{}, tcpAt("127.0.0.1:1", 3)}, tcpAt("127.0.0.1:2", 3), false, nil},
		{"a path", false, []plan.Action{plan.NewRoot{}}, unix("/run/agent"), true, nil},
		{"a path before there is a root", false, nil, unix("/run/agent"), false, nil},
		{"a path of the host's root", false, []plan.Action{plan.NewRoot{Host: true}}, unix("/run/agent"), false, nil},
		{"a path of the root that is kept", false, []plan.Action{plan.NewRoot{}, plan.KeepRoot{}}, unix("/run/agent"), false, errOnHost},
		{"a path below a bind", false, []plan.Action{plan.NewRoot{}, plan.Bind{Source: "/ws", At: "/ws", Dir: true}}, unix("/ws/agent"), false, errOnHost},
		{"a path below a layout's bind", false, []plan.Action{plan.NewRoot{}, plan.PutBind{Source: "/ws", At: "/ws", Dir: true, Write: true}}, unix("/ws/x/agent"), false, errOnHost},
		{"a path in a layout's tmpfs below a bind", false, []plan.Action{plan.NewRoot{}, plan.PutBind{Source: "/", At: "/", Dir: true}, plan.PutTmpfs{At: "/run"}}, unix("/run/agent"), true, nil},
		{"a path below an overlay that writes to the host", false, []plan.Action{plan.NewRoot{}, plan.PutOverlay{At: "/o", Layers: []string{"/l"}, Upper: "/u", Work: "/w"}}, unix("/o/agent"), false, errOnHost},
		{"a path without a name", false, []plan.Action{plan.NewRoot{}}, unix("/"), false, nil},
		{"a name that is too long", false, []plan.Action{plan.NewRoot{}}, unix("/run/" + long), false, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Namespaces: plan.Namespaces{Mount: true, Net: !test.host}}
			for _, a := range append(test.before, test.do) {
				p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
			}
			_, err := Compile(p, Identity{})
			if (err == nil) != test.ok || test.is != nil && !errors.Is(err, test.is) {
				t.Error(err)
			}
		})
	}
	for _, in := range []plan.Place{plan.Stage, plan.Tool} {
		p := plan.Plan{Namespaces: plan.Namespaces{Net: true}, Steps: []plan.Step{{In: plan.Init, Do: plan.Loopback{}}, {In: in, Do: tcpAt("127.0.0.1:1", 0)}}}
		if _, err := Compile(p, Identity{}); err == nil {
			t.Errorf("in the %s", in)
		}
	}
}
