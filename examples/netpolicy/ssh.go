package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// serveSSH serves a repository and its file over SSH, to every client that has a key.
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

// session runs the one thing that it is asked for.
func session(channel ssh.Channel, requests <-chan *ssh.Request, repository string) {
	defer channel.Close()
	for r := range requests {
		var asked struct{ Text string }
		var cmd *exec.Cmd
		if ssh.Unmarshal(r.Payload, &asked) == nil {
			cmd = served(r.Type, asked.Text, repository)
		}
		if r.WantReply {
			r.Reply(cmd != nil || r.Type == "env", nil)
		}
		if cmd == nil {
			continue
		}
		status := uint32(0)
		if err := runOver(channel, cmd); err != nil {
			fmt.Fprintln(channel.Stderr(), err)
			status = 1
		}
		channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// served is what a session may ask for: git's reading of a repository, the one file
// that is in it, and files by SFTP, as scp does. Nil: anything else.
func served(kind, text, repository string) *exec.Cmd {
	upload, ofGit := strings.CutPrefix(text, "git-upload-pack ")
	switch {
	case kind == "exec" && ofGit:
		cmd := exec.Command("git", "upload-pack", filepath.Join(repository, filepath.Base(strings.Trim(upload, "'"))))
		cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		return cmd
	case kind == "exec" && text == "cat hello.txt":
		return exec.Command("cat", filepath.Join(repository, "work", "hello.txt"))
	case kind == "subsystem" && text == "sftp":
		return exec.Command(sftpServer, "-R", "-d", filepath.Join(repository, "work"))
	}
	return nil
}

// sftpServer is OpenSSH's, where Debian has it.
const sftpServer = "/usr/lib/openssh/sftp-server"

// runOver runs a command whose input ends with the command, not with the client's.
func runOver(channel ssh.Channel, cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		io.Copy(in, channel)
		in.Close()
	}()
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	return cmd.Run()
}
