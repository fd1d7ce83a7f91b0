package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A peer is another program that stands between a client and the server. pid is
// the process whose memory counts.
type peer struct {
	pid   int
	proxy string // its URL
	stop  func()
}

// errMissing: a peer that is not installed is left out of the table.
var errMissing = errors.New("not installed")

// startProxy starts a proxy with a configuration file and waits until it listens.
func startProxy(program, config string, args ...string) (*peer, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, errMissing
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	replace := strings.NewReplacer("PORT", strconv.Itoa(port), "DIR", dir)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(replace.Replace(config)), 0o644); err != nil {
		return nil, err
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "CONFIG", file)
	}
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{pid: cmd.Process.Pid, proxy: fmt.Sprintf("http://127.0.0.1:%d", port), stop: func() {
		cmd.Process.Signal(syscall.SIGTERM) // squid leaves shared memory if it is killed
		cmd.Wait()
		os.RemoveAll(dir)
	}}
	if err := awaitListener(fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return p, nil
}

func startTinyproxy() (*peer, error) {
	return startProxy("tinyproxy", "Port PORT\nListen 127.0.0.1\nMaxClients 4000\nTimeout 600\nLogLevel Critical\nLogFile \"DIR/log\"\nPidFile \"DIR/pid\"\n", "-d", "-c", "CONFIG")
}

func startSquid() (*peer, error) {
	return startProxy("squid", "http_port 127.0.0.1:PORT\ncache deny all\nhttp_access allow all\naccess_log none\ncache_log /dev/null\npid_filename none\ncache_mem 8 MB\nmax_filedescriptors 8192\n"+
		"shutdown_lifetime 0 seconds\nmemory_cache_shared off\ncoredump_dir /\n", "-N", "-n", fmt.Sprintf("bench%d", os.Getpid()), "-f", "CONFIG")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func awaitListener(addr string) error {
	var err error
	for range 200 {
		var c net.Conn
		if c, err = net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// slirp is the command that runs a client in a network namespace of its own,
// which slirp4netns connects; its gateway stands for the host's loopback.
const slirp = `
mkfifo "$1/up" "$1/ready"
unshare --user --map-root-user --net sh -c 'echo $$ >"$1/up"; read x <"$1/ready"; shift; exec "$@"' - "$@" <&3 &
client=$!
read pid <"$1/up"
slirp4netns --configure --mtu=65520 --ready-fd=4 $pid tap0 4>"$1/ready" >/dev/null 2>&1 &
trap 'kill $!' EXIT
wait $client
`

// slirpCommand returns the words to run a client so.
func slirpCommand(dir string, argv ...string) ([]string, error) {
	for _, p := range []string{"slirp4netns", "unshare"} {
		if _, err := exec.LookPath(p); err != nil {
			return nil, errMissing
		}
	}
	return append([]string{"sh", "-c", "exec 3<&0\n" + slirp, "-", dir}, argv...), nil
}

// slirpGateway is the host's loopback inside (slirp4netns(1)).
const slirpGateway = "10.0.2.2"

// pastaCommand does the same with pasta: the gateway's address stands for the
// host's loopback.
func pastaCommand(argv ...string) ([]string, error) {
	if _, err := exec.LookPath("pasta"); err != nil {
		return nil, errMissing
	}
	return append([]string{"pasta", "--config-net", "--quiet", "--runas", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "-a", "10.0.2.15", "-n", "24", "-g", slirpGateway, "-m", "65520", "--"}, argv...), nil
}
