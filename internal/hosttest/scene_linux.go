package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A scene is what the acts of a tool are about: the workspace, and around it what the tool must not reach. The tool
// gets it by the variable sceneVariable.
type scene struct {
	WS, Outside        string
	Harness, Bystander int
	Group              int // the harness's process group
	TCP, UDP           int // ports of servers of the harness's on 127.0.0.1
	Unix, Abstract     string
	Shm, Msg           int // SysV's, of the harness
	UID                int
	GVisor             bool
}

const (
	sceneVariable = "HOLDFAST_SCENE"
	secret        = "the content of a file outside"
	mark          = "holdfast-bystander" // in the bystander's command line and environment
	tokenVariable = "SERVICE_API_KEY"    // which the harness has and the tool must not get
)

// A stage has the scene's living parts, and what they noticed.
type stage struct {
	scene
	bystander *exec.Cmd
	closers   []func()
	mu        sync.Mutex
	noticed   map[string]bool // signals by name; "tcp", "udp", "unix", "abstract": a server was reached
}

func (s *stage) notice(what string) {
	s.mu.Lock()
	s.noticed[what] = true
	s.mu.Unlock()
}

func (s *stage) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noticed[what]
}

// signals are those that acts send to the harness, each by another way.
var signals = []os.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGHUP, unix.SIGWINCH, unix.SIGIO}

// newStage makes a scene below dir.
func newStage(dir string) (*stage, error) {
	s := &stage{noticed: map[string]bool{}}
	s.WS, s.Outside, s.Harness, s.UID = filepath.Join(dir, "ws"), filepath.Join(dir, "outside"), os.Getpid(), os.Getuid()
	s.Group = unix.Getpgrp()
	if err := s.files(); err != nil {
		return nil, err
	}
	got := make(chan os.Signal, 16)
	signal.Notify(got, signals...)
	go func() {
		for sig := range got {
			s.notice(unix.SignalName(sig.(unix.Signal)))
		}
	}()
	s.closers = append(s.closers, func() { signal.Stop(got); close(got) })
	if err := s.servers(); err != nil {
		s.close()
		return nil, err
	}
	s.Shm, _, _ = segment()
	s.Msg, _ = queue()
	exe, err := os.Executable()
	if err != nil {
		s.close()
		return nil, err
	}
	s.bystander = exec.Command(exe, "bystander", mark)
	s.bystander.Env = []string{"MARK=" + mark}
	if err := s.bystander.Start(); err != nil {
		s.close()
		return nil, err
	}
	s.Bystander = s.bystander.Process.Pid
	return s, nil
}

// files makes the workspace and what lies outside of it.
func (s *stage) files() error {
	for _, d := range []string{filepath.Join(s.WS, ".git", "hooks"), filepath.Join(s.WS, "a", "b"), filepath.Join(s.Outside, "empty"), filepath.Join(s.Outside, "moved")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	old := time.Unix(1_000_000_000, 0)
	for _, name := range []string{"secret", "removed", "moved/f", "cut", "mode", "times", "run"} {
		p := filepath.Join(s.Outside, name)
		if err := os.WriteFile(p, []byte(secret), 0o644); err != nil {
			return err
		}
		os.Chmod(p, 0o644) // whatever the umask
		os.Chtimes(p, old, old)
	}
	run := filepath.Join(s.Outside, "run")
	return errors.Join(os.WriteFile(run, []byte("#!/bin/sh\nexit 0\n"), 0), os.Chmod(run, 0o755))
}

// servers listens as the harness, and notices who comes.
func (s *stage) servers() error {
	s.Unix, s.Abstract = filepath.Join(s.Outside, "socket"), fmt.Sprintf("@holdfast-%d-%d", os.Getpid(), time.Now().UnixNano())
	tcp, err := s.listen("tcp", "127.0.0.1:0", "tcp")
	if err != nil {
		return err
	}
	s.TCP = tcp.(*net.TCPAddr).Port
	if _, err := s.listen("unix", s.Unix, "unix"); err != nil {
		return err
	}
	if _, err := s.listen("unix", s.Abstract, "abstract"); err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() { c.Close() })
	s.UDP = c.LocalAddr().(*net.UDPAddr).Port
	go func() {
		if _, _, err := c.ReadFrom(make([]byte, 64)); err == nil {
			s.notice("udp")
		}
	}()
	return nil
}

func (s *stage) listen(network, address, name string) (net.Addr, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.notice(name)
			c.Close()
		}
	}()
	return l.Addr(), nil
}

func (s *stage) close() {
	if s.bystander != nil && s.bystander.Process != nil {
		s.bystander.Process.Kill()
		s.bystander.Wait()
	}
	for _, f := range slices.Backward(s.closers) {
		f()
	}
	removeSegment(s.Shm)
	removeQueue(s.Msg)
	os.RemoveAll(s.WS)
	os.RemoveAll(s.Outside)
}

// environ is the scene as the tool's variable.
func (s *stage) environ() string {
	text, err := json.Marshal(s.scene)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(text)
}

// theScene reads it as the tool.
func theScene() (s scene, err error) {
	err = json.NewDecoder(strings.NewReader(os.Getenv(sceneVariable))).Decode(&s)
	return s, err
}
