package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// serveSSH serves git's own commands over SSH to whoever has a key.
func (s *site) serveSSH(repository string) (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return "", err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.stop = append(s.stop, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go speakSSH(c, config, repository)
		}
	}()
	return l.Addr().String(), nil
}

func speakSSH(c net.Conn, config *ssh.ServerConfig, repository string) {
	defer c.Close()
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		if offer.ChannelType() != "session" {
			offer.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		go session(channel, requests, repository)
	}
}

// session runs the one command that is served: git-upload-pack of a repository.
func session(channel ssh.Channel, requests <-chan *ssh.Request, repository string) {
	defer channel.Close()
	for r := range requests {
		var asked struct{ Command string }
		known := r.Type == "exec" && ssh.Unmarshal(r.Payload, &asked) == nil && strings.HasPrefix(asked.Command, "git-upload-pack ")
		if r.WantReply {
			r.Reply(known || r.Type == "env", nil)
		}
		if !known {
			continue
		}
		name := filepath.Base(strings.Trim(strings.TrimPrefix(asked.Command, "git-upload-pack "), "'"))
		cmd := exec.Command("git", "upload-pack", filepath.Join(repository, name))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
		cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		status := uint32(0)
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(channel.Stderr(), err)
			status = 1
		}
		channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}
