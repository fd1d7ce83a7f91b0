package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	greeting = "hello from the server"
	secret   = "a secret that no tool may see"
)

// A site is the servers: HTTPS for both hosts, with a git repository, registries
// of npm, pip and go, and a page that asks for a token; an SSH server; and
// one that answers datagrams.
type site struct {
	https, ssh, udp string // addresses
	authority       string // PEM: who has signed the certificate
	stop            []func()
}

func (s *site) close() {
	for _, stop := range s.stop {
		stop()
	}
}

// newSite starts the servers. What they serve lies in dir, beside the workspace.
func newSite(dir string) (*site, error) {
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		return nil, err
	}
	repository := filepath.Join(dir, "repositories")
	if err := makeRepository(repository); err != nil {
		return nil, err
	}
	certificate, authority, err := certify(good, evil)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{https: l.Addr().String(), authority: authority}
	server := &http.Server{Handler: pages(repository), ErrorLog: log.New(discard{}, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go server.ServeTLS(l, "", "")
	s.stop = append(s.stop, func() { server.Close() })
	if s.ssh, err = s.serveSSH(repository); err != nil {
		s.close()
		return nil, err
	}
	if err := s.serveUDP(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// serveUDP answers each datagram with the greeting, at another port than HTTPS's,
// where the token's requests are judged: HTTP/3 would go past that.
func (s *site) serveUDP() error {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if s.udp = c.LocalAddr().String(); port(s.udp) == port(s.https) {
		defer c.Close()
		return s.serveUDP()
	}
	s.stop = append(s.stop, func() { c.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo([]byte(greeting), from)
		}
	}()
	return nil
}

// discard: what clients break off is no news.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// port is the port of an address.
func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// certify makes an authority and a certificate of it for some names.
func certify(names ...string) (tls.Certificate, string, error) {
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "netpolicy's authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})), nil
}

// makeRepository makes a repository of one file below dir.
func makeRepository(dir string) error {
	bare := filepath.Join(dir, "hello.git")
	work := filepath.Join(dir, "work")
	script := `git init -q -b main "$2" && cd "$2" && printf '%s\n' "$3" >hello.txt && git add . &&
		git -c user.name=n -c user.email=n@example.com commit -qm hello && git clone -q --bare . "$1" && git -C "$1" update-server-info`
	cmd := exec.Command("sh", "-c", script, "-", bare, work, greeting)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a repository: %w: %s", err, out)
	}
	return nil
}

func pages(repository string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, greeting) })
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "the token is wrong", http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, "the token is right; it begins with", strings.Fields(secret)[0])
	})
	registries(mux)
	core, err := exec.Command("git", "--exec-path").Output()
	if err == nil {
		mux.Handle("/git/", &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Root: "/git",
			Env: []string{"GIT_PROJECT_ROOT=" + repository, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	}
	return mux
}
