package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// groves are the workspaces of the section: so many files in directories of a hundred, below so many repositories, or all in the top.
var groves = []struct{ files, repositories int }{
	{100, 10}, {1000, 10}, {10_000, 10}, {100_000, 10}, {100_000, 0}, {1000, 1000},
}

// workspaces measures what the number of files in the workspace does to New and to starts.
func workspaces(rounds int) ([]table, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var list []contender
	for i, g := range groves {
		work := filepath.Join(dir, fmt.Sprint(i))
		if err := plant(work, g.files, g.repositories); err != nil {
			return nil, err
		}
		other, err := newWorker(self, harnessWorker, "0", withoutNamespaces, work)
		if err != nil {
			return nil, err
		}
		defer other.close()
		more, end, err := contendIn(work, other)
		if err != nil {
			return nil, err
		}
		defer end()
		list = append(list, more...)
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("Starts of %s in workspaces of many files, %d rounds: ms, medians and quartiles", trivial, rounds),
		head:   []string{"files in the workspace", "New", "first command of a process", "Sandbox.Command", "of a prepared sandbox", "without namespaces"},
		remark: "In directories of a hundred, in so many repositories of which each names its hooks in its configuration; or all in the top."}
	each := len(list) / len(groves)
	for i, g := range groves {
		row := []string{fmt.Sprintf("%d, in %d repositories", g.files, g.repositories)}
		if g.repositories == 0 {
			row = []string{fmt.Sprintf("%d, all in the top", g.files)}
		}
		for k := range each {
			row = append(row, r.time(i*each+k, time.Millisecond).String())
		}
		t.add(row...)
	}
	return []table{t}, nil
}

// contendIn are the contenders of one workspace; other is a harness without namespaces.
func contendIn(work string, other *worker) (list []contender, end func() error, err error) {
	s, err := sandbox.New(sandbox.Workspace(work))
	if err != nil {
		return nil, nil, err
	}
	prepared, err := sandbox.New(sandbox.Workspace(work))
	if err != nil {
		return nil, nil, err
	}
	return []contender{
		timed("New", func() error { _, err := sandbox.New(sandbox.Workspace(work)); return err }),
		{"first command", func() (time.Duration, error) { return firstCommand(work) }},
		timed(sandboxed, func() error { c := s.Command(trivial); c.Dir = work; return c.Run() }),
		{fromReady, func() (time.Duration, error) { return fromPrepared(prepared, work) }},
		{alone, func() (time.Duration, error) { return other.ask("start") }},
	}, prepared.Close, nil
}

// plant makes a workspace of small files, evenly in repositories; 0: in the top.
func plant(work string, files, repositories int) error {
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	for i := range repositories {
		git := filepath.Join(work, fmt.Sprint("repository", i), ".git")
		err := errors.Join(os.MkdirAll(git+"/objects", 0o755), os.Mkdir(git+"/refs", 0o755), os.WriteFile(git+"/HEAD", []byte("ref: refs/heads/main\n"), 0o644),
			os.WriteFile(git+"/config", []byte("[core]\n\thooksPath = hooks\n"), 0o644))
		if err != nil {
			return err
		}
	}
	for i := range files {
		at := filepath.Join(work, fmt.Sprint("file", i))
		if repositories > 0 {
			per := files / repositories
			at = filepath.Join(work, fmt.Sprint("repository", i/per), fmt.Sprint("directory", i%per/100), fmt.Sprint("file", i))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(at, []byte("text\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
