package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A job is work full of small writes. Its script begins in an empty directory, with the Go compiler's sources
// in $SOURCES and as an archive in $ARCHIVE.
type job struct{ name, program, script string }

var jobs = []job{
	{"git init, add, commit, checkout of the compiler's sources", "bash", `cp -r "$SOURCES" src; cd src; git init -q .; git add -A
git -c user.name=n -c user.email=e@example.com commit -qm one; rm -r [a-z]*; git checkout -q .`},
	{"1,500 programs and 3,000 redirections of a shell", "bash", `for i in $(seq 1500); do /bin/true; echo $i >a; echo $i >>b; done`},
	{"20,000 small writes and 6,000 renames in Python", "python3", `
import os
for i in range(20000):
    with open("f%d" % (i % 2000), "w") as f: f.write("x" * 100)
for i in range(6000): os.rename("f%d" % (i % 2000), "g%d" % (i % 2000)); os.rename("g%d" % (i % 2000), "f%d" % (i % 2000))`},
	{"tar x of the compiler's sources, ten times", "bash", `for i in 1 2 3 4 5 6 7 8 9 10; do mkdir $i; tar -C $i -xf "$ARCHIVE"; done`},
	{"go vet of a module of 100 packages, with an empty cache", "bash", `export GOCACHE=$PWD/cache TMPDIR=$PWD GOFLAGS=-mod=mod; cp -r "$PACKAGES" p; cd p; go vet ./...`},
}

// contend has the job done by what command makes, each time in an empty directory of its name below ground.
func (j job) contend(name, ground string, env []string, by func(name string, args ...string) command) contender {
	return contender{name, func() (time.Duration, error) {
		at, err := os.MkdirTemp(ground, "job")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(at)
		c := by(j.program, "-c", j.script)
		c.Env = append(os.Environ(), env...)
		return timeBuild(at, c)
	}}
}

// work measures jobs inside, by bubblewrap, and outside.
func work(rounds int) ([]table, error) {
	caches, err := os.UserCacheDir() // below /tmp the sources would be covered
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(caches, "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	env, err := materials(dir)
	if err != nil {
		return nil, err
	}
	ground := filepath.Join(dir, "ground")
	p := sandbox.Workspace(ground)
	p.Files.Read = append(p.Files.Read, dir)
	p.Env.Pass = append(p.Env.Pass, "SOURCES", "ARCHIVE", "PACKAGES")
	if err := os.Mkdir(ground, 0o755); err != nil {
		return nil, err
	}
	s, err := sandbox.New(p)
	if err != nil {
		return nil, err
	}
	peer, version := bubblewrap(ground)
	t := table{title: fmt.Sprintf("Work full of small writes, %d rounds: medians and quartiles", rounds),
		head: []string{"", "s outside", "x outside, inside", "x outside, bubblewrap"}, remark: version}
	for _, j := range jobs {
		list := []contender{
			j.contend("outside", ground, env, outsideCommand),
			j.contend("inside", ground, env, func(name string, args ...string) command { return insideCommand(s, name, args...) }),
		}
		if peer != nil {
			list = append(list, j.contend(wrapped, ground, env, func(name string, args ...string) command {
				return outsideCommand(peer[0], append(append(peer[1:len(peer):len(peer)], name), args...)...)
			}))
		}
		r, err := interleave(rounds, list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.name, err)
		}
		beside := ""
		if peer != nil {
			beside = r.ratio(2, 0).digits(3)
		}
		t.add(j.name, r.time(0, time.Second).String(), r.ratio(1, 0).digits(3), beside)
	}
	return []table{t}, nil
}

// materials makes what jobs begin with, and returns the variables that name it.
func materials(dir string) (env []string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	sources, archive, packages := filepath.Join(strings.TrimSpace(string(root)), "src/cmd/compile"), filepath.Join(dir, "sources.tar"), filepath.Join(dir, "packages")
	if _, err := os.Stat(sources); err != nil {
		return nil, fmt.Errorf("the compiler's sources: %w", err)
	}
	if out, err := exec.Command("tar", "-C", filepath.Dir(sources), "-cf", archive, "compile").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tar: %w: %s", err, out)
	}
	files := map[string]string{"go.mod": "module example.com/many\n\ngo 1.24\n"}
	for i := range 100 {
		files[fmt.Sprintf("p%d/p.go", i)] = fmt.Sprintf("package p%d\n\nfunc F(n int) int { return n + %d }\n", i, i)
	}
	for name, text := range files {
		at := filepath.Join(packages, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return []string{"SOURCES=" + sources, "ARCHIVE=" + archive, "PACKAGES=" + packages}, nil
}
