package seatbelt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// bruteForce is the order of precedence as the documentation says it, over every
// rule and without an index.
func bruteForce(p *Profile, q Query) (allow bool, rule int) {
	a := &asked{Query: q, proto: q.Protocol}
	if a.refused() != "" {
		return false, -1
	}
	for _, op := range chain(q.Operation) {
		filtered, unfiltered := -1, -1
		for i := range p.Rules {
			r := &p.Rules[i]
			for _, o := range r.Operations {
				if o != op {
					continue
				}
				if len(r.Filters) == 0 {
					unfiltered = i
				}
				for j := range r.Filters {
					if r.Filters[j].matches(a) {
						filtered = i
					}
				}
			}
		}
		for _, i := range []int{filtered, unfiltered} {
			if i >= 0 {
				return p.Rules[i].Action == Allow, i
			}
		}
	}
	return false, -1
}

// pick is one of the words.
func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

func randomPath(r *rand.Rand) string {
	p := ""
	for range 1 + r.IntN(4) {
		p += "/" + pick(r, "a", "b", "ab", "c.d")
	}
	return p
}

func randomFilter(r *rand.Rand, depth int) string {
	n := r.IntN(12)
	if depth > 2 {
		n = r.IntN(9)
	}
	switch n {
	case 0, 1:
		return fmt.Sprintf("(literal %q)", randomPath(r))
	case 2, 3:
		return fmt.Sprintf("(subpath %q %q)", randomPath(r), pick(r, "/", "/a", "/zz", "/b/a"))
	case 4:
		return fmt.Sprintf("(prefix %q)", randomPath(r))
	case 5:
		return fmt.Sprintf("(regex #\"^%s(/|$)\")", pick(r, "/a", "/[ab]", "/a.*b", "/.*"))
	case 6:
		return fmt.Sprintf("(vnode-type %s)", pick(r, "DIRECTORY", "REGULAR-FILE", "SYMLINK"))
	case 7:
		return fmt.Sprintf("(%s %q)", pick(r, "global-name", "sysctl-name", "global-name-prefix", "xattr"), pick(r, "a", "ab", "b"))
	case 8:
		return fmt.Sprintf("(path-ancestors %q)", randomPath(r))
	case 9:
		return fmt.Sprintf("(require-not %s)", randomFilter(r, depth+1))
	case 10:
		return fmt.Sprintf("(require-all %s %s)", randomFilter(r, depth+1), randomFilter(r, depth+1))
	}
	return fmt.Sprintf("(require-any %s %s)", randomFilter(r, depth+1), randomFilter(r, depth+1))
}

func randomProfile(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("(version 1)\n")
	for range 1 + r.IntN(25) {
		fmt.Fprintf(&b, "(%s %s", pick(r, "allow", "deny"), pick(r, "file*", "file-read*", "file-read-data", "file-write*", "file-write-create", "mach*", "mach-lookup", "default", "file-read* mach-lookup"))
		for range r.IntN(4) {
			b.WriteString(" " + randomFilter(r, 0))
		}
		b.WriteString(")\n")
	}
	return b.String()
}

func randomQuery(r *rand.Rand) Query {
	q := Query{Operation: pick(r, "file-read-data", "file-read-metadata", "file-write-create", "file-ioctl", "mach-lookup", "file-read*", "signal")}
	q.Path = randomPath(r)
	q.VnodeType = pick(r, "", "DIRECTORY", "REGULAR-FILE")
	q.Name = pick(r, "", "a", "ab")
	if r.IntN(3) == 0 {
		q.Attributes = map[string]string{"xattr": pick(r, "a", "b")}
	}
	return q
}

func TestTheIndexFindsWhatEveryRuleAskedInTurnWould(t *testing.T) {
	kerneltest.Long(t)
	r := rand.New(rand.NewPCG(1, 2))
	decided := map[string]int{}
	for range 2000 {
		text := randomProfile(r)
		p, err := Parse(Source{Name: "random.sb", Text: text}, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for range 50 {
			q := randomQuery(r)
			v := p.Evaluate(q)
			allow, rule := bruteForce(p, q)
			got := -1
			for i := range p.Rules {
				if v.Rule == &p.Rules[i] {
					got = i
				}
			}
			if v.Allow != allow || got != rule {
				t.Fatalf("%+v: %v by rule %d, not %v by rule %d\n%s", q, v.Allow, got, allow, rule, text)
			}
			decided[fmt.Sprint("step ", v.Step, " ", v.Allow)]++
		}
	}
	t.Log(decided)
	if len(decided) < 8 {
		t.Errorf("the random profiles try too little: %v", decided)
	}
}
