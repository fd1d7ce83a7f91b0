package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A world is what there is outside the sandbox, made for the occasion: a
// workspace, a secret and a place that are none of the tool's business, a
// server, and a process.
type world struct {
	dir       string // of all that lies on disk
	workspace string
	about     string // what the workspace is
	own       bool   // it is a copy of the module that this program belongs to
	secret    string // a file
	key       string // what is in it
	outside   string // a directory
	port      string // of the server on 127.0.0.1
	mark      string // a word in the process's command line
	listener  net.Listener
	victim    *exec.Cmd
	life      io.Closer // the victim's input: it ends when this closes
}

func newWorld() (*world, error) {
	w := &world{mark: "quickstart-" + rand.Text()[:8], key: "PRIVATE-KEY-" + rand.Text()}
	if err := w.make(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) make() (err error) {
	if w.dir, err = os.MkdirTemp("", "quickstart-"); err != nil {
		return err
	}
	w.workspace, w.outside = filepath.Join(w.dir, "workspace"), filepath.Join(w.dir, "outside")
	w.secret = filepath.Join(w.dir, "home", ".ssh", "id_ed25519")
	for _, dir := range []string{w.workspace, w.outside, filepath.Dir(w.secret)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(w.secret, []byte(w.key+"\n"), 0o600); err != nil {
		return err
	}
	os.Setenv("QUICKSTART_API_KEY", w.key) // as harnesses have them
	if err := w.fill(); err != nil {
		return err
	}
	return w.start()
}

// start starts the server and the process. The server sends the key to each client.
func (w *world) start() (err error) {
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	_, w.port, _ = net.SplitHostPort(w.listener.Addr().String())
	go func() {
		for {
			conn, err := w.listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, w.key+"\n")
			conn.Close()
		}
	}()
	w.victim = exec.Command("sh", "-c", "read line; exit 7", w.mark)
	if w.life, err = w.victim.StdinPipe(); err != nil {
		return err
	}
	return w.victim.Start()
}

// lives reports whether the process outside still runs, and ends it.
func (w *world) lives() bool {
	w.life.Close()
	w.victim.Wait()
	return w.victim.ProcessState.ExitCode() == 7
}

func (w *world) close() {
	if w.listener != nil {
		w.listener.Close()
	}
	if w.victim != nil && w.victim.Process != nil && w.victim.ProcessState == nil {
		w.lives()
	}
	if w.dir != "" {
		os.RemoveAll(w.dir)
	}
}

// fill makes the workspace: a copy of the module around the working directory,
// or a small one where there is none.
func (w *world) fill() error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if name := moduleName(filepath.Join(dir, "go.mod")); name != "" {
			w.about, w.own = "a copy of "+name, name == ownModule()
			return copyTree(w.workspace, dir)
		}
		if dir == filepath.Dir(dir) {
			w.about = "a new module"
			return os.WriteFile(filepath.Join(w.workspace, "go.mod"), []byte("module example.org/new\n\ngo 1.21\n"), 0o644)
		}
	}
}

func moduleName(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

// copyTree copies regular files that can be read. Hidden directories, files
// beyond 1 MiB and a worktree's .git file are no part of a module's source.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil || rel == "." {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return os.Mkdir(filepath.Join(to, rel), 0o755)
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 || d.Name() == ".git" {
			return err
		}
		data, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}
