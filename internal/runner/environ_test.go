package runner

import (
	"slices"
	"strings"
	"testing"
)

// TestAnOwnEnvIsFilteredAsTheHarnesssIs: what is as in the harness's environment, present or
// absent, is as it would be for a nil Env; what the caller did stands.
func TestAnOwnEnvIsFilteredAsTheHarnesssIs(t *testing.T) {
	host := []string{"HOME=/home/me", "PATH=/opt/me/bin:/usr/bin", "LANG=C", "AWS_SECRET_ACCESS_KEY=abc", "GITHUB_TOKEN=ghp_mine", "https_proxy=http://corp:1", "PWD=/here"}
	network := []string{"https_proxy=http://127.0.0.1:3128", "http_proxy=http://127.0.0.1:3128", "API=placeholder_sk-0000000000000000"}
	inside := append([]string{"HOME=/home/me", "PATH=/usr/bin", "LANG=C", "TMPDIR=/tmp", "PWD=/srv/p"}, network...)
	type result struct {
		vars     string
		withheld int
		secrets  string
	}
	always := " https_proxy=http://127.0.0.1:3128 http_proxy=http://127.0.0.1:3128 API=placeholder_sk-0000000000000000"
	for _, c := range []struct {
		name string
		own  []string
		want result
	}{
		{"everything and more", append(slices.Clone(host), "X=1"),
			result{"HOME=/home/me PATH=/usr/bin LANG=C https_proxy=http://127.0.0.1:3128 PWD=/srv/p X=1 TMPDIR=/tmp http_proxy=http://127.0.0.1:3128 API=placeholder_sk-0000000000000000", 2, ""}},
		{"nothing", []string{}, result{"TMPDIR=/tmp" + always, 0, ""}},
		{"a few of its own", []string{"A=1"}, result{"A=1 TMPDIR=/tmp" + always, 0, ""}},
		{"changed on purpose", []string{"HOME=/elsewhere", "TMPDIR=/srv/p/tmp", "PATH=/bin", "PWD=/x", "https_proxy=http://mine:2", "LANG="},
			result{"HOME=/elsewhere TMPDIR=/srv/p/tmp PATH=/bin PWD=/x https_proxy=http://mine:2 LANG= http_proxy=http://127.0.0.1:3128 API=placeholder_sk-0000000000000000", 0, ""}},
		{"secrets of the caller's", []string{"GITHUB_TOKEN=ghp_other", "AWS_SECRET_ACCESS_KEY=abc", "OPENAI_API_KEY=x", "NOTE=see ghp_abcdef", "GIT_PAGER=cat", "LD_PRELOAD=/x.so", "MY_TOKEN="},
			result{"GITHUB_TOKEN=ghp_other OPENAI_API_KEY=x NOTE=see ghp_abcdef GIT_PAGER=cat LD_PRELOAD=/x.so MY_TOKEN= TMPDIR=/tmp" + always, 1, "GITHUB_TOKEN OPENAI_API_KEY NOTE"}},
		{"what Environ has returned", append(slices.Clone(inside), "CI=true"), result{strings.Join(inside, " ") + " CI=true", 0, ""}},
		{"entries without a name or a value", []string{"bare", "", "=odd", "=C:=x"}, result{"bare  =odd =C:=x TMPDIR=/tmp" + always, 0, ""}},
	} {
		e := OwnEnviron(c.own, host, inside, network)
		if got := (result{strings.Join(e.Vars, " "), e.Withheld, strings.Join(e.Secrets, " ")}); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
	given := GivenEnviron([]string{"GITHUB_TOKEN=ghp_mine", "API=placeholder_sk-0000000000000000", "A=1"}, inside)
	if len(given.Vars) != 3 || !slices.Equal(given.Secrets, []string{"GITHUB_TOKEN"}) {
		t.Errorf("as given: %+v", given)
	}
}
