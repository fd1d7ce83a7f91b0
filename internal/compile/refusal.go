package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A lack is a bound that this host cannot hold.
type lack struct {
	*policy.UnsupportedError
	cause string // of [plan.Loss]
}

func lacking(b policy.Bound, l plan.Loss) lack {
	return lack{&policy.UnsupportedError{Bound: b, What: l.What, Reason: l.Why, Remedy: l.Remedy}, l.Cause}
}

// A refusal joins the lacks of which some are for want of namespaces, and says
// once what would change it: on this host, or in the policy.
type refusal struct {
	lacks []lack
	facts host.Facts
	lost  []string // what is not held if the policy accepts it: "files: ..."
}

// weaker are the bounds that a policy in a container accepts as weaker.
var weaker = policy.Policy{}.InContainer().May

// refuse joins lacks, and says what helps where namespaces would.
func refuse(f host.Facts, lacks []lack, holdings []plan.Holding) error {
	r := &refusal{lacks: lacks, facts: f}
	if !slices.ContainsFunc(lacks, r.byNamespaces) {
		return errors.Join(r.Unwrap()...)
	}
	for _, h := range holdings {
		if slices.Contains(weaker, h.Bound) {
			for _, what := range together(h.Lost) {
				r.lost = append(r.lost, fmt.Sprintf("%s: %s", h.Bound, what))
			}
		}
	}
	return r
}

// together returns what is lost, with the paths of which the same is said in one sentence.
func together(lost []plan.Loss) []string {
	var list []string
	paths := map[string][]string{}
	for _, l := range lost {
		at, what, found := strings.Cut(l.What, " ")
		if !found || !strings.HasPrefix(at, "/") {
			at, what = "", l.What
		}
		if !slices.Contains(list, what) {
			list = append(list, what)
		}
		if at != "" {
			paths[what] = append(paths[what], at)
		}
	}
	const most = 3
	for i, what := range list {
		switch at := paths[what]; {
		case len(at) > most:
			list[i] = fmt.Sprintf("%s and %d more %s", strings.Join(at[:most], ", "), len(at)-most, what)
		case len(at) > 0:
			list[i] = strings.Join(at, ", ") + " " + what
		}
	}
	return list
}

// byNamespaces reports whether a bound is not held because there are no namespaces.
func (r *refusal) byNamespaces(no lack) bool {
	return (r.facts.Namespaces.Answer == host.No || r.facts.SharedPIDs) && no.cause == r.facts.Namespaces.Name
}

// Error says for each bound what stands in the way, and then, for all of them, what helps.
func (r *refusal) Error() string {
	var b strings.Builder
	only, needed := true, false // only: what stands in the way is that there are no namespaces; needed: the policy cannot do without another thing
	for _, no := range r.lacks {
		if r.byNamespaces(no) {
			fmt.Fprintf(&b, "sandbox: this host cannot hold %s: %s: %s\n", no.Bound, no.What, no.Reason)
			only = only && slices.Contains(weaker, no.Bound)
			continue
		}
		only = false
		needed = needed || no.Needed
		fmt.Fprintln(&b, no)
	}
	at := ""
	if around := r.facts.Around.String(); around != "" {
		at = " in " + around
	}
	with, them := "namespaces", "them"
	if r.facts.SharedPIDs {
		with, them = "a pid namespace and its /proc", "these two"
	}
	if ways := r.facts.Ways(); len(ways) > 0 {
		fmt.Fprintf(&b, "with %s every bound is held; any one of these lets this program make %s%s:\n", with, them, at)
		for _, w := range ways {
			fmt.Fprintf(&b, "  %s:\n    %s\n", w.In, strings.ReplaceAll(w.Text, "\n", "\n    "))
		}
	} else {
		fmt.Fprintf(&b, "with %s every bound is held; for these%s: %s\n", with, at, r.facts.Namespaces.Remedy)
	}
	if only && len(r.lost) > 0 {
		fmt.Fprintf(&b, "or accept what is weaker without them, in Go:\n    policy = policy.InContainer()\n  then not held:\n    %s\n", strings.Join(r.lost, "\n    "))
	} else if !needed {
		b.WriteString("or name each bound in Policy.May to run without it\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Unwrap returns the [policy.UnsupportedError]s.
func (r *refusal) Unwrap() []error {
	errs := make([]error, len(r.lacks))
	for i, no := range r.lacks {
		errs[i] = no.UnsupportedError
	}
	return errs
}

// Unheld returns a [policy.UnsupportedError] for each bound of which something is lost, unless the policy's May names it.
func Unheld(p policy.Policy, holdings []plan.Holding) []error {
	return (&refusal{lacks: unheld(p, holdings)}).Unwrap()
}

func unheld(p policy.Policy, holdings []plan.Holding) []lack {
	var lacks []lack
	for _, h := range holdings {
		if len(h.Lost) > 0 && !slices.Contains(p.May, h.Bound) {
			lacks = append(lacks, lacking(h.Bound, h.Lost[0]))
		}
	}
	return lacks
}
