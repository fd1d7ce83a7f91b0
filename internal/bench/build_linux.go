package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// changed is the file that is changed before each build, so that the packages
// that import its package, nearly all, have to be compiled again.
const changed = "internal/sys/changed.go"

// build measures a go build of this module inside and outside. Each begins with
// the same build cache and another change.
func build(rounds int) ([]table, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	// A cache below /tmp would not be the tool's: anybody can write there.
	caches, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(caches, "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	work, cache := filepath.Join(dir, "work"), filepath.Join(dir, "cache")
	if err := os.Mkdir(cache, 0o755); err != nil {
		return nil, err
	}
	if err := os.CopyFS(work, os.DirFS(root)); err != nil {
		return nil, err
	}
	os.Setenv("GOCACHE", cache)
	os.Setenv("GOFLAGS", "-buildvcs=false")
	p := sandbox.Workspace(work)
	p.Env.Pass = append(p.Env.Pass, "GOFLAGS")
	s, err := sandbox.New(p)
	if err != nil {
		return nil, err
	}
	if err := sameCache(s, work, cache); err != nil {
		return nil, err
	}
	nonce := 0
	contend := func(name string, make func() command) contender {
		return contender{name, func() (time.Duration, error) {
			nonce++
			text := fmt.Sprintf("package sys\n\n// Changed is another one each time.\nconst Changed = %d\n", nonce)
			if err := os.WriteFile(filepath.Join(work, changed), []byte(text), 0o644); err != nil {
				return 0, err
			}
			return timeBuild(work, make())
		}}
	}
	args := []string{"build", "-o", "bin/", "./examples/run", "./internal/bench"}
	r, err := interleave(rounds, []contender{
		contend("outside", func() command { return outsideCommand("go", args...) }),
		contend("inside", func() command { return insideCommand(s, "go", args...) }),
	})
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("`go build` of two programs of this module after a change, %d rounds: medians and quartiles", rounds), head: []string{"", "s", "x outside"}}
	for i, name := range r.names {
		t.add(name, r.time(i, time.Second).String(), r.ratio(i, 0).digits(3))
	}
	return []table{t}, nil
}

// sameCache makes sure that what is compared is the same.
func sameCache(s *sandbox.Sandbox, work, cache string) error {
	c := insideCommand(s, "go", "env", "GOCACHE")
	c.in(work)
	out, err := c.Output()
	if err == nil && strings.TrimSpace(string(out)) != cache {
		err = fmt.Errorf("the cache inside is %q, not %q", out, cache)
	}
	return err
}

func timeBuild(dir string, c command) (time.Duration, error) {
	c.in(dir)
	began := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return took, err
}
