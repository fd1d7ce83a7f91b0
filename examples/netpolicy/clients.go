package main

import (
	"os/exec"
	"strconv"
	"strings"
)

// A client is a program and what it is asked to do: $1 is the host, $2 the port
// of HTTPS, $3 that of SSH, $4 that of UDP. It has worked if it ends well and says what it has to.
type client struct {
	name   string
	needs  []string
	udp    bool // it sends datagrams, which a capture alone carries
	since  int  // the major version of node whose fetch knows proxies
	script string
	says   string
}

// ssh is told of the key and of no host's, since both are new each time.
const (
	newKey  = `ssh-keygen -q -t ed25519 -N "" -f key && `
	withKey = `-i $PWD/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`
)

var clients = []client{
	{name: "curl", needs: []string{"curl"}, script: `curl -sS --fail-with-body https://$1:$2/hello`, says: greeting},
	{name: "curl with token", needs: []string{"curl"}, says: "the token is right",
		script: `curl -sS --fail-with-body -H "Authorization: Bearer $API_TOKEN" https://$1:$2/whoami`},
	{name: "wget", needs: []string{"wget"}, script: `wget -nv -O - https://$1:$2/hello`, says: greeting},
	{name: "git, https", needs: []string{"git"}, script: `git clone -q https://$1:$2/git/hello.git && cat hello/hello.txt`, says: greeting},
	{name: "git, ssh", needs: []string{"git", "ssh"}, says: greeting,
		script: newKey + `GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh} ` + withKey + `" git clone -q ssh://git@$1:$3/hello.git && cat hello/hello.txt`},
	{name: "ssh", needs: []string{"ssh"}, script: newKey + `ssh ` + withKey + ` -p $3 git@$1 cat hello.txt`, says: greeting},
	{name: "scp", needs: []string{"scp", sftpServer}, script: newKey + `scp -q ` + withKey + ` -P $3 git@$1:hello.txt . && cat hello.txt`, says: greeting},
	{name: "npm", needs: []string{"npm"}, script: `npm install --silent --no-audit --no-fund --fetch-retries=0 --registry https://$1:$2/npm/ holdfast-hello 2>&1 && cat node_modules/holdfast-hello/index.js`, says: greeting},
	{name: "pip", needs: []string{"python3"}, script: `python3 -m pip install -q --no-input --disable-pip-version-check --retries 0 --no-deps --target out --index-url https://$1:$2/simple/ holdfast-hello 2>&1; cat out/holdfast_hello.py`, says: greeting},
	{name: "python requests", needs: []string{"python3", "import:requests"}, script: `python3 -c 'import requests, sys; print(requests.get(f"https://{sys.argv[1]}:{sys.argv[2]}/hello").text)' $1 $2`, says: greeting},
	{name: "python urllib", needs: []string{"python3"}, script: `python3 -c 'import sys, urllib.request as u; print(u.urlopen(f"https://{sys.argv[1]}:{sys.argv[2]}/hello").read().decode())' $1 $2`, says: greeting},
	{name: "node fetch", needs: []string{"node"}, since: 24, script: `node -e 'fetch("https://" + process.argv[1] + "/hello").then(r => r.text()).then(console.log, e => { console.error(e.message, e.cause && e.cause.message); process.exit(1) })' $1:$2`, says: greeting},
	{name: "python, UDP", needs: []string{"python3"}, udp: true, says: greeting,
		script: `python3 -c 'import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.connect((sys.argv[1], int(sys.argv[2]))); s.send(b"hello?"); print(s.recv(2000).decode())' $1 $4 2>&1`},
	{name: "node, UDP", needs: []string{"node"}, udp: true, says: greeting,
		script: `node -e 'const s = require("dgram").createSocket("udp4"); const no = e => { console.error(e.message); process.exit(1) }; setTimeout(() => no({message: "no answer"}), 20000).unref(); s.on("error", no); s.on("message", m => { console.log(m.toString()); s.close() }); s.connect(Number(process.argv[2]), process.argv[1], e => e ? no(e) : s.send("hello?"))' $1 $4`},
	{name: "go", needs: []string{"go"}, says: greeting,
		script: `export GOPROXY=https://$1:$2/go GONOSUMDB=* GONOSUMCHECK=1 GOFLAGS=-mod=mod GOMODCACHE=$PWD/cache GOTOOLCHAIN=local; go mod init x 2>/dev/null; go get hello.example/hello@v1.0.0 && cat cache/hello.example/hello@v1.0.0/hello.go; s=$?; chmod -R u+w cache; exit $s`},
}

// missing says why a client cannot be tried; "": it can.
func (c client) missing(captured bool) string {
	for _, n := range c.needs {
		if module, ok := strings.CutPrefix(n, "import:"); ok {
			if exec.Command("python3", "-c", "import "+module).Run() != nil {
				return "python has no " + module
			}
		} else if _, err := exec.LookPath(n); err != nil {
			return n + " is not installed"
		}
	}
	if c.udp && !captured {
		return "no proxy carries datagrams; see -capture"
	}
	if c.since > 0 && !captured && nodeVersion() < c.since {
		return "node before " + strconv.Itoa(c.since) + " knows no proxies in fetch; see -capture"
	}
	return ""
}

func nodeVersion() int {
	out, err := exec.Command("node", "-p", "process.versions.node.split('.')[0]").Output()
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}
