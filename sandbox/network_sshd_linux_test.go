package sandbox

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/crypto/ssh"
)

// An sshd is a server that runs commands in a directory of its own, for whoever
// has its key.
type sshd struct {
	address    string
	dir        string
	key, known string // the client's key, and what it knows of the server's
	config     *ssh.ServerConfig
}

func newSSHD(t *testing.T) *sshd {
	t.Helper()
	sign := func() (ssh.Signer, ed25519.PrivateKey) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return must(ssh.NewSignerFromKey(key)), key
	}
	server, _ := sign()
	client, key := sign()
	d := &sshd{dir: t.TempDir(), key: string(pem.EncodeToMemory(must(ssh.MarshalPrivateKey(key, "")))), known: "* " + string(ssh.MarshalAuthorizedKey(server.PublicKey()))}
	d.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(k.Marshal(), client.PublicKey().Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	d.config.AddHostKey(server)
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	d.address = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(c)
		}
	}()
	return d
}

func (d *sshd) serve(c net.Conn) {
	defer c.Close()
	_, channels, requests, err := ssh.NewServerConn(c, d.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		if offer.ChannelType() == "direct-tcpip" { // what a jump asks for: it jumps to this server
			go ssh.DiscardRequests(requests)
			go d.jump(channel)
			continue
		}
		go d.session(channel, requests)
	}
}

func (d *sshd) jump(channel ssh.Channel) {
	defer channel.Close()
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		return
	}
	defer c.Close()
	go io.Copy(c, channel)
	io.Copy(channel, c)
}

// sftpServers are where systems have the server of OpenSSH.
var sftpServers = []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server"}

func sftpServer() string {
	for _, name := range sftpServers {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

func (d *sshd) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		var asked struct{ Text string }
		command := ""
		if ssh.Unmarshal(r.Payload, &asked) == nil && r.Type == "exec" {
			command = asked.Text
		}
		if r.Type == "subsystem" && asked.Text == "sftp" {
			command = sftpServer()
		}
		if r.WantReply {
			r.Reply(command != "" || r.Type == "env", nil)
		}
		if command == "" {
			continue
		}
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, channel, channel.Stderr()
		in, _ := cmd.StdinPipe()
		go func() { io.Copy(in, channel); in.Close() }()
		status := uint32(0)
		if cmd.Run() != nil {
			status = 1
		}
		channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// sshSandbox is a sandbox whose Internet has the server at port 22 of every host,
// and whose user is set up as users of ssh are.
func sshSandbox(t *testing.T, w walls, d *sshd, change func(p *Policy)) *Sandbox {
	t.Helper()
	me := must(user.Current())
	home := filepath.Join(me.HomeDir, ".ssh") // ssh asks the system where it is, and not HOME
	s := networkSandbox(t, w, func(p *Policy) {
		p.Network.SSH = true
		p.Network.Hosts = []string{"allowed.example:22", "sub.allowed.example:22"}
		p.Files.Make = []policy.File{
			{Path: filepath.Join(home, "key"), Data: d.key, Mode: 0o600},
			{Path: filepath.Join(home, "known"), Data: d.known},
			{Path: filepath.Join(home, "config"), Data: strings.ReplaceAll("IdentityFile HOME/key\nUserKnownHostsFile HOME/known\nStrictHostKeyChecking yes\nBatchMode yes\nLogLevel ERROR\n", "HOME", home)},
		}
		if change != nil {
			change(p)
		}
	})
	dial := s.ready.Networks.Outside.Dial
	s.ready.Networks.Outside.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Port() == 22 {
			return (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
		}
		return dial(ctx, to)
	}
	return s
}

// shell runs a script in a sandbox.
func shell(s *Sandbox, script string, args ...string) (string, *Report, error) {
	c := s.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	c.Dir = "/tmp"
	out, err := c.CombinedOutput()
	return string(out), c.Report(), err
}
