package compile

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestARefusalIsAWayOut: it says once what helps on this host, and the line of Go where that is enough, with all that is lost.
func TestARefusalIsAWayOut(t *testing.T) {
	docker := func(f *host.Facts) {
		fixture.WithoutNamespaces(f)
		f.Around = host.Around{Runtime: host.Docker, Evidence: "/.dockerenv exists", Filtered: true, Masked: true}
		f.Obstacle = host.Obstacle{Errno: syscall.EPERM}
	}
	podman := func(f *host.Facts) {
		sharedPIDs(f)
		f.Around = host.Around{Runtime: host.Podman, Evidence: "/run/.containerenv exists", Filtered: true, Masked: true}
	}
	gvisor := func(f *host.Facts) {
		docker(f)
		f.Around.Runtime = host.GVisor
	}
	const (
		options = "docker run:\n    --security-opt seccomp=unconfined --security-opt systempaths=unconfined\n"
		inGo    = "    policy = policy.InContainer()\n"
		may     = "name each bound in Policy.May"
		lost    = "    files: /home/me, /home/me/.cache/go, /tmp cannot be private"
		others  = "    processes: other processes' names"
	)
	all := []string{options, inGo, may, lost, others, "(remedy: ", "in Docker (/.dockerenv exists)", "for these in gVisor", "with a pid namespace and its /proc every bound is held", "unmask=ALL"}
	for name, c := range map[string]struct {
		change func(*host.Facts)
		policy policy.Policy
		want   []string // of all, in this order
	}{
		"Docker":                              {docker, policy.Policy{}, []string{"in Docker (/.dockerenv exists)", options, inGo, lost, others}},
		"Docker, and a bound of another fact": {both(docker, lacksSeccomp), policy.Policy{}, []string{"(remedy: ", "in Docker (/.dockerenv exists)", options, may}},
		"Docker, one bound accepted":          {docker, policy.Policy{May: []policy.Bound{policy.BoundFiles}}, []string{"in Docker (/.dockerenv exists)", options, inGo, lost, others}},
		"Docker, and another fact with its remedy": {both(docker, func(f *host.Facts) {
			f.Seccomp = fixture.No("seccomp")
			f.Seccomp.Remedy = f.Namespaces.Remedy
		}), policy.Policy{}, []string{"(remedy: ", "in Docker (/.dockerenv exists)", options, may}},
		"Docker without close_range":              {both(docker, func(f *host.Facts) { f.Calls = fixture.No("calls") }), policy.Policy{}, []string{"(remedy: "}},
		"Docker without pidfds":                   {both(docker, func(f *host.Facts) { f.PIDFD = fixture.No("pidfds") }), policy.Policy{}.InContainer(), []string{"(remedy: "}},
		"Podman, which covers parts of /proc":     {podman, policy.Policy{}, []string{"with a pid namespace and its /proc every bound is held", "unmask=ALL", inGo, others}},
		"gVisor":                                  {gvisor, policy.Policy{}, []string{"for these in gVisor", inGo, lost, others}},
		"a host with namespaces, without filters": {lacksSeccomp, policy.Policy{}, []string{"(remedy: ", may[:4]}},
	} {
		facts := fixture.Host()
		c.change(&facts)
		_, err := Plan(inputOf(fixture.WorkspaceTree(), facts, c.policy))
		var no *policy.UnsupportedError
		if !errors.As(err, &no) || !errors.Is(err, errors.ErrUnsupported) || no.Remedy == "" {
			t.Fatalf("%s: %v", name, err)
		}
		rest := err.Error()
		for _, text := range c.want {
			_, after, found := strings.Cut(rest, text)
			if !found {
				t.Errorf("%s: %q is not there, or before another:\n%v", name, text, err)
			}
			rest = after
		}
		for _, text := range all {
			if n := strings.Count(err.Error(), text); n > 0 != slices.Contains(c.want, text) || n > 1 && text == options {
				t.Errorf("%s: %q is there %d times:\n%v", name, text, n, err)
			}
		}
		// What the line of Go says is so.
		if slices.Contains(c.want, inGo) {
			if _, err := Plan(inputOf(fixture.WorkspaceTree(), facts, c.policy.InContainer())); err != nil {
				t.Errorf("%s: InContainer: %v", name, err)
			}
		}
	}
}

func TestWhatIsLostOfManyPathsIsOneSentence(t *testing.T) {
	loss := func(list ...string) (l []plan.Loss) {
		for _, what := range list {
			l = append(l, plan.Loss{What: what})
		}
		return l
	}
	for _, c := range []struct{ lost, want []string }{
		{nil, nil},
		{[]string{"all names can be seen"}, []string{"all names can be seen"}},
		{[]string{"/a is open", "x y", "/b is open", "/c is shut"}, []string{"/a, /b is open", "x y", "/c is shut"}},
		{[]string{"/a is open", "/b is open", "/c is open", "/d is open", "/e is open"}, []string{"/a, /b, /c and 2 more is open"}},
	} {
		if got := together(loss(c.lost...)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.lost, got)
		}
	}
}
