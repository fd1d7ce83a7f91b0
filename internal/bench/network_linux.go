package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	bulkBytes   = 256 << 20
	manyQuick   = 500
	manyConnect = 100
	manyIdle    = 1000
)

// serveNetwork is the server that is measured: /N answers with N bytes.
func serveNetwork() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	zeroes := make([]byte, 1<<20)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
		for n > 0 {
			k, err := w.Write(zeroes[:min(n, len(zeroes))])
			if err != nil {
				return
			}
			n -= k
		}
	})}
	go s.Serve(l)
	return l.Addr().String(), func() { s.Close() }, nil
}

// A path is one way from a client to the server, with a client at its end.
type path struct {
	name   string
	client *worker
	pid    int // whose memory is measured; 0: none is
	stop   func()
}

// network measures what stands between a tool and a server: nothing, other
// proxies, ours, and user-space network stacks.
func network(rounds int) ([]table, error) {
	server, stop, err := serveNetwork()
	if err != nil {
		return nil, err
	}
	defer stop()
	paths, missing, err := layPaths(server)
	for _, p := range paths {
		defer p.stop()
	}
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("From a client to a server on loopback, %d rounds: medians and quartiles", rounds),
		head: []string{"", fmt.Sprintf("bulk (%d MiB), MB/s", bulkBytes>>20), "x direct", "a request on an open connection, us", "a connection and a request, us"}}
	var all [3]*results
	for i, line := range []string{fmt.Sprintf("bulk %d", bulkBytes), fmt.Sprintf("request %d", manyQuick), fmt.Sprintf("connect %d", manyConnect)} {
		var list []contender
		for _, p := range paths {
			list = append(list, contender{p.name, func() (time.Duration, error) { return p.client.ask(line) }})
		}
		if all[i], err = interleave(rounds, list); err != nil {
			return nil, err
		}
	}
	for i, p := range paths {
		speed := all[0].per(i, 0, func(a, _ float64) float64 { return bulkBytes / a * 1000 })
		share := all[0].per(i, 0, func(a, b float64) float64 { return b / a })
		t.add(p.name, speed.digits(0), share.String(), all[1].time(i, time.Microsecond).digits(0), all[2].time(i, time.Microsecond).digits(0))
	}
	if len(missing) > 0 {
		t.remark = "Not measured: " + strings.Join(missing, ", ") + "."
	}
	held, err := idleMemory(paths)
	return []table{t, held}, err
}

// idleMemory measures what an idle connection costs each that stands between.
func idleMemory(paths []path) (table, error) {
	t := table{title: fmt.Sprintf("Memory of %d idle connections, proportional set size of what stands between", manyIdle), head: []string{"", "KiB before", "KiB each"}}
	for _, p := range paths {
		if p.pid == 0 {
			continue
		}
		before, err := pssOf(p.pid)
		if err != nil {
			return t, err
		}
		if _, err := p.client.ask(fmt.Sprintf("idle %d", manyIdle)); err != nil {
			return t, fmt.Errorf("%s: %w", p.name, err)
		}
		after, err := pssOf(p.pid)
		if err != nil {
			return t, err
		}
		t.add(p.name, fmt.Sprint(before), fmt.Sprintf("%.1f", float64(after-before)/manyIdle))
	}
	return t, nil
}

// layPaths starts everything; what is not installed is named.
func layPaths(server string) (paths []path, missing []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(server)
	for _, lay := range []struct {
		name string
		make func() (path, error)
	}{
		{"direct", func() (path, error) { return layClient(nil, self, networkClient, server) }},
		{"tinyproxy", func() (path, error) { return layProxy(startTinyproxy, self, server) }},
		{"squid", func() (path, error) { return layProxy(startSquid, self, server) }},
		{"Holdfast's proxy, client in its sandbox", func() (path, error) { return laySandbox("proxy", self, server) }},
		{"slirp4netns", func() (path, error) {
			dir, err := os.MkdirTemp("", "holdfast-bench-")
			if err != nil {
				return path{}, err
			}
			argv, err := slirpCommand(dir, self, networkClient, net.JoinHostPort(slirpGateway, port))
			if err != nil {
				return path{}, err
			}
			return layClient(func() { os.RemoveAll(dir) }, argv...)
		}},
		{"pasta (passt)", func() (path, error) {
			argv, err := pastaCommand(self, networkClient, net.JoinHostPort(slirpGateway, port))
			if err != nil {
				return path{}, err
			}
			return layClient(nil, argv...)
		}},
		{"Holdfast's capture, client in its sandbox", func() (path, error) { return laySandbox("capture", self, server) }},
	} {
		p, err := lay.make()
		if errors.Is(err, errMissing) {
			missing = append(missing, lay.name)
			continue
		}
		if err != nil {
			return paths, missing, fmt.Errorf("%s: %w", lay.name, err)
		}
		p.name = lay.name
		paths = append(paths, p)
	}
	return paths, missing, nil
}

func layClient(after func(), argv ...string) (path, error) {
	w, err := newWorker(argv[0], argv[1:]...)
	if err != nil {
		return path{}, err
	}
	return path{client: w, stop: func() {
		w.close()
		if after != nil {
			after()
		}
	}}, nil
}

func layProxy(start func() (*peer, error), self, server string) (path, error) {
	between, err := start()
	if err != nil {
		return path{}, err
	}
	p, err := layClient(between.stop, self, networkClient, server, between.proxy)
	p.pid = between.pid
	return p, err
}

// laySandbox starts a harness of its own, whose memory can be told from the
// server's.
func laySandbox(kind, self, server string) (path, error) {
	p, err := layClient(nil, self, networkHarness, kind, server)
	if err == nil {
		p.pid = p.client.cmd.Process.Pid
	}
	return p, err
}
