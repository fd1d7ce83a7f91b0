package hostrules

import (
	"strings"
	"testing"
)

func TestWhetherAnEntryCanBeReached(t *testing.T) {
	for _, c := range []struct {
		name, allow, deny, entry string
		ask                      bool
		want                     Outcome
		rule                     string
	}{
		{"the same name", "a.example", "", "a.example", false, Allow, "a.example"},
		{"the same name in another spelling", "A.example.", "", "a.EXAMPLE", false, Allow, "A.example."},
		{"another name", "a.example", "", "b.example", false, Unknown, ""},
		{"nothing at all", "", "", "b.example", false, Unknown, ""},
		{"a name below a wildcard", "*.example", "", "a.example", false, Allow, "*.example"},
		{"a wildcard's own suffix", "*.example", "", "example", false, Unknown, ""},
		{"a wildcard of which one name is allowed", "a.b.example", "", "*.example", false, Allow, "a.b.example"},
		{"a wildcard below a wildcard", "*.example", "", "*.b.example", false, Allow, "*.example"},
		{"a wildcard above a wildcard", "*.b.example", "", "*.example", false, Allow, "*.b.example"},
		{"another wildcard", "*.b.example", "", "*.c.example", false, Unknown, ""},
		{"a wildcard within all", "*", "", "*.example.com", false, Allow, "*"},
		{"all, of one name", "a.example", "", "*", false, Allow, "a.example"},
		{"a port of all ports", "a.example", "", "a.example:443", false, Allow, "a.example"},
		{"all ports of one port", "a.example:443", "", "a.example", false, Allow, "a.example:443"},
		{"another port", "a.example:443", "", "a.example:80", false, Unknown, ""},
		{"a range that touches", "a.example:443-500", "", "a.example:80-443", false, Allow, "a.example:443-500"},
		{"the second entry", "b.example a.example", "", "a.example", false, Allow, "a.example"},
		{"an address within a range", "10.0.0.0/8", "", "10.1.2.3:443", false, Allow, "10.0.0.0/8"},
		{"a range around an address", "10.1.2.3", "", "10.0.0.0/8", false, Allow, "10.1.2.3"},
		{"another range", "10.0.0.0/8", "", "192.168.0.0/16", false, Unknown, ""},
		{"a name, of addresses", "10.0.0.0/8", "", "a.example", false, Unknown, ""},
		{"an address, of names", "*.example", "", "93.184.216.34", false, Unknown, ""},
		{"a public address within all", "*", "", "93.184.216.34", false, Allow, "*"},
		{"a private address within all", "*", "", "10.1.2.3", false, Unknown, ""},
		{"a private address within every address", "0.0.0.0/0", "", "10.1.2.3", false, Unknown, ""},
		{"every address within all", "*", "", "0.0.0.0/0", false, Allow, "*"},
		{"a metadata service within its range", "169.254.0.0/16", "", "169.254.169.254", false, Unknown, ""},
		{"what is denied", "*.example", "a.example", "a.example", false, Deny, "a.example"},
		{"what is denied at another port", "*.example", "a.example:80", "a.example", false, Allow, "*.example"},
		{"what is denied at the one port that is allowed", "a.example:443", "a.example:400-500", "a.example", false, Deny, "a.example:400-500"},
		{"a wildcard of which one name is denied", "*.example", "a.example", "*.example", false, Allow, "*.example"},
		{"a wildcard that is denied", "*", "*.example", "*.example", false, Deny, "*.example"},
		{"a name, when all is denied", "a.example", "*", "a.example", false, Deny, "*"},
		{"an address in a range that is denied", "10.1.2.3", "10.0.0.0/8", "10.1.2.3", false, Deny, "10.0.0.0/8"},
		{"one way denied, another open", "a.example:80 a.example:443", "a.example:80", "a.example", false, Allow, "a.example:443"},
		{"what may be asked about", "", "", "a.example", true, Allow, "a.example"},
		{"what is denied whoever is asked", "", "*.example", "a.example", true, Deny, "*.example"},
	} {
		rules, err := Compile(strings.Fields(c.allow), strings.Fields(c.deny))
		if err != nil {
			t.Fatal(err)
		}
		if d := rules.Reach(c.entry, c.ask); d.Outcome != c.want || d.Rule != c.rule {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}
