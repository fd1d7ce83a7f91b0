package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// fetchJava asks with the JDK's own client, whose proxy and trust store are
// properties.
const fetchJava = `
public class Fetch {
	public static void main(String[] a) throws Exception {
		var c = new java.net.URL("https://example.com/java").openConnection();
		c.setRequestProperty("Authorization", "Bearer " + System.getenv("TOKEN"));
		System.out.print(new String(c.getInputStream().readAllBytes()));
	}
}
`

// fetchNode tunnels by hand, since Node knows proxies since 22.21; its TLS reads
// NODE_EXTRA_CA_CERTS in every version.
const fetchNode = `
const p = new URL(process.env.HTTPS_PROXY);
require('http').request({host: p.hostname, port: p.port, method: 'CONNECT', path: 'example.com:443', headers: {Host: 'example.com:443'}}).on('connect', (_, socket) => {
	require('https').get({host: 'example.com', path: '/node', createConnection: () => require('tls').connect({socket, servername: 'example.com'}),
		headers: {Host: 'example.com', Authorization: 'Bearer ' + process.env.TOKEN}}, r => r.pipe(process.stdout));
}).end();
`

const fetchPython = `
import os, ssl, urllib.request
r = urllib.request.Request("https://example.com/python", headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
print(urllib.request.urlopen(r).read().decode())
`

const fetchRequests = `
import os, requests
print(requests.get("https://example.com/requests", headers={"Authorization": "Bearer " + os.environ["TOKEN"]}).text)
`

const fetchHTTPLib2 = `
import os, httplib2
print(httplib2.Http().request("https://example.com/httplib2", headers={"Authorization": "Bearer " + os.environ["TOKEN"]})[1].decode())
`

const fetchRuby = `
require "open-uri"
puts URI.open("https://example.com/ruby", "Authorization" => "Bearer " + ENV["TOKEN"]).read
`

const fetchPerl = `
use LWP::UserAgent;
print LWP::UserAgent->new->get("https://example.com/perl", Authorization => "Bearer $ENV{TOKEN}")->decoded_content;
`

func TestRealClientsUseTheVariablesAndNeverSeeTheSecret(t *testing.T) {
	kerneltest.Long(t)
	dir := t.TempDir()
	hits := make(chan string, 1000)
	both := append(bearer(), policy.Credential{Name: "TOKEN", Secret: testSecret, Hosts: []string{"example.com:443"}, Place: "basic"})
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: both}}, func(rw http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer "+testSecret && password != testSecret {
			rw.Header().Set("WWW-Authenticate", "Basic realm=x")
			http.Error(rw, "who is it?", http.StatusUnauthorized)
			return
		}
		hits <- r.URL.Path
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			fmt.Fprintf(rw, "%s\trefs/heads/main\n", strings.Repeat("1", 40))
			return
		}
		fmt.Fprintf(rw, `{"said": "hello %s"}`, testSecret)
	})
	env := clientEnv(t, w, dir)
	slow := []string{"requests", "pip", "java"}
	for _, c := range []struct {
		name, needs, path, want string
		arg                     []string
	}{
		{"curl", "curl", "/curl", "hello ", []string{"curl", "-sS", "-H", "Authorization: Bearer " + w.placeholder, "https://example.com/curl"}},
		{"curl, HTTP/1.1", "curl", "/curl", "hello ", []string{"curl", "-sS", "--http1.1", "-u", "me:" + w.placeholder, "https://example.com/curl"}},
		{"curl, SOCKS", "curl", "/socks", "hello ", []string{"curl", "-sS", "--socks5-hostname", w.socks, "-H", "Authorization: Bearer " + w.placeholder, "https://example.com/socks"}},
		{"wget", "wget", "/wget", "hello ", []string{"wget", "-qO-", "--ca-certificate=" + filepath.Join(dir, "roots.pem"), "--header=Authorization: Bearer " + w.placeholder, "https://example.com/wget"}},
		{"git", "git", "/r.git/info/refs", "refs/heads/main", []string{"git", "ls-remote", "https://me:" + w.placeholder + "@example.com/r.git"}},
		{"urllib", "python3", "/python", "hello ", []string{"python3", "-c", fetchPython}},
		{"httplib2", "python3-httplib2", "/httplib2", "hello ", []string{"/usr/bin/python3", "-c", fetchHTTPLib2}},
		{"ruby", "ruby", "/ruby", "hello ", []string{"ruby", "-e", fetchRuby}},
		{"perl", "perl-LWP", "/perl", "hello ", []string{"perl", "-e", fetchPerl}},
		{"aria2", "aria2c", "/aria2", "hello ", []string{"sh", "-c", "aria2c -q --async-dns=false --ca-certificate=roots.pem --header=\"Authorization: Bearer $TOKEN\" -o out https://example.com/aria2 && cat out"}},
		{"requests", "python3-requests", "/requests", "hello ", []string{"python3", "-c", fetchRequests}},
		{"pip", "pip", "/simple/thing/", "", []string{"pip", "download", "--retries", "0", "--no-deps", "--index-url", "https://me:" + w.placeholder + "@example.com/simple", "thing"}},
		{"node", "node", "/node", "hello ", []string{"node", "-e", fetchNode}},
		{"npm", "npm", "/-/ping", "", []string{"npm", "ping", "--registry", "https://example.com/", "--//example.com/:_authToken=" + w.placeholder}},
		{"java", "javac", "/java", "hello ", []string{"java", filepath.Join(dir, "Fetch.java")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if slices.Contains(slow, c.name) {
				kerneltest.Heavy(t) // the others use the same variables
			}
			if missing := lacks(c.needs); missing != nil {
				t.Skipf("needs %s: %v", c.needs, missing)
			}
			cmd := exec.Command(c.arg[0], c.arg[1:]...)
			cmd.Env, cmd.Dir = env, dir
			out, err := cmd.CombinedOutput()
			said := string(out)
			if c.want != "" && (err != nil || !strings.Contains(said, c.want)) || strings.Contains(said, "value-of-the-user") {
				t.Errorf("%v: %s", err, said)
			}
			if c.want == "hello " && !strings.Contains(said, w.placeholder) {
				t.Errorf("the placeholder is not in its place: %s", said)
			}
			if len(hits) == 0 || <-hits != c.path {
				t.Errorf("the server was not asked for %s: %s", c.path, said)
			}
			for len(hits) > 0 {
				<-hits
			}
		})
	}
}

// clientEnv writes the trust bundle and store and returns a tool's environment.
func clientEnv(t *testing.T, w *secureWorld, dir string) []string {
	t.Helper()
	store, err := w.g.Store()
	if err != nil {
		t.Fatal(err)
	}
	o := clientenv.VariablesOptions{HTTP: netip.MustParseAddrPort(w.http), Bundle: filepath.Join(dir, "roots.pem"), Store: filepath.Join(dir, "roots.p12")}
	for name, data := range map[string]string{"roots.pem": string(w.g.Bundle()), "roots.p12": string(store), "Fetch.java": fetchJava} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(clientenv.Variables(o), "PATH="+os.Getenv("PATH"), "HOME="+dir, "PYENV_ROOT="+os.Getenv("PYENV_ROOT"), "TOKEN="+w.placeholder, "GIT_TERMINAL_PROMPT=0", "PIP_DISABLE_PIP_VERSION_CHECK=1", "npm_config_update_notifier=false")
}

// lacks says why a client cannot run.
func lacks(program string) error {
	switch program {
	case "python3-requests":
		return exec.Command("python3", "-c", "import requests").Run()
	case "python3-httplib2":
		return exec.Command("/usr/bin/python3", "-c", "import httplib2").Run()
	case "perl-LWP":
		return exec.Command("perl", "-MLWP::Protocol::https", "-e", "1").Run()
	}
	_, err := exec.LookPath(program)
	return err
}
