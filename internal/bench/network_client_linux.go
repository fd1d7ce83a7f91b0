package main

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const networkClient = "network-client"

// A dialer connects to the server that is measured: by itself, or through an
// HTTP proxy.
type dialer struct {
	server string // host:port
	proxy  string // host:port; "": none
	auth   string // a header line for the proxy, with its end
}

// tunnel makes a connection on which the server listens: with a proxy, by CONNECT.
func (d dialer) tunnel() (net.Conn, *bufio.Reader, error) {
	to := d.proxy
	if to == "" {
		to = d.server
	}
	c, err := net.Dial("tcp", to)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReaderSize(c, 64<<10)
	if d.proxy == "" {
		return c, in, nil
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", d.server, d.auth)
	h, err := readHead(in)
	if err == nil && h.status != "200" {
		err = fmt.Errorf("the proxy answers %s", h.status)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, in, nil
}

// plain makes a connection for plain HTTP requests, and says what precedes the
// path in them.
func (d dialer) plain() (net.Conn, *bufio.Reader, string, error) {
	if d.proxy == "" {
		c, in, err := d.tunnel()
		return c, in, "", err
	}
	c, err := net.Dial("tcp", d.proxy)
	return c, bufio.NewReader(c), "http://" + d.server, err
}

// request sends one request and reads all of its answer. more: there may be another.
func (d dialer) request(c net.Conn, in *bufio.Reader, prefix, path string) (more bool, err error) {
	auth := d.auth
	if prefix == "" {
		auth = ""
	}
	fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", prefix, path, d.server, auth)
	h, err := readHead(in)
	if err != nil {
		return false, err
	}
	if h.status != "200" || h.length < 0 {
		return false, fmt.Errorf("%s answers %s, length %d", path, h.status, h.length)
	}
	_, err = io.CopyN(io.Discard, in, h.length)
	return !h.last, err
}

// stillOpen waits a little for the proxy to close: some do without having said so.
func stillOpen(c net.Conn, in *bufio.Reader) bool {
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer c.SetReadDeadline(time.Time{})
	_, err := in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// A head is what counts of an answer's head: its status, its Content-Length
// (-1: none), and whether it is the connection's last.
type head struct {
	status string
	length int64
	last   bool
}

func readHead(in *bufio.Reader) (head, error) {
	h := head{length: -1}
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			return h, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			return h, nil
		}
		if first {
			version, rest, _ := strings.Cut(line, " ")
			h.status, _, _ = strings.Cut(rest, " ")
			h.last = version == "HTTP/1.0"
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if h.length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return h, err
			}
		case "connection":
			h.last = strings.EqualFold(value, "close")
		}
	}
}

// beNetworkClient reads lines from its standard input and answers each with
// nanoseconds: "bulk BYTES", "request N" (N requests on one connection: the
// median), "connect N" (N connections with a request each: the median), "idle N"
// (opens N connections and keeps them). Its arguments are the server and, if
// there is one, the proxy's URL.
func beNetworkClient(args []string) error {
	d := dialer{server: args[0]}
	if len(args) > 1 {
		if err := d.through(args[1]); err != nil {
			return err
		}
	}
	var kept []net.Conn
	defer func() {
		for _, c := range kept {
			c.Close()
		}
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, number, _ := strings.Cut(in.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		var took time.Duration
		switch verb {
		case "bulk":
			took, err = d.bulk(n)
		case "request":
			took, err = d.requests(n)
		case "connect":
			took, err = d.connects(n)
		case "idle":
			took, err = d.idle(n, &kept)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		fmt.Println(int64(took))
	}
	return nil
}

// proxyOfEnvironment stands for the URL in HTTP_PROXY.
const proxyOfEnvironment = "env"

// through sets the proxy.
func (d *dialer) through(proxy string) error {
	if proxy == proxyOfEnvironment {
		proxy = os.Getenv("HTTP_PROXY")
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return err
	}
	d.proxy = u.Host
	if u.User != nil {
		d.auth = "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.String())) + "\r\n"
	}
	return nil
}

func (d dialer) bulk(bytes int) (time.Duration, error) {
	c, in, err := d.tunnel()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	if _, err := d.request(c, in, "", fmt.Sprintf("/%d", bytes)); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

func (d dialer) requests(n int) (time.Duration, error) {
	var c net.Conn
	var in *bufio.Reader
	var prefix string
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	once := false
	list := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		if c == nil {
			var err error
			if c, in, prefix, err = d.plain(); err != nil {
				return 0, err
			}
		}
		more, err := d.request(c, in, prefix, "/100")
		if err == nil && more && prefix != "" && len(list) == 0 {
			more = stillOpen(c, in)
		}
		if err != nil {
			return 0, err
		}
		list = append(list, time.Since(began))
		if !more || once { // a proxy that keeps no connection open
			once = true
			c.Close()
			c = nil
		}
	}
	slices.Sort(list)
	return list[len(list)/2], nil
}

func (d dialer) connects(n int) (time.Duration, error) {
	list := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		c, in, err := d.tunnel()
		if err != nil {
			return 0, err
		}
		_, err = d.request(c, in, "", "/100")
		list = append(list, time.Since(began))
		c.Close()
		if err != nil {
			return 0, err
		}
	}
	slices.Sort(list)
	return list[len(list)/2], nil
}

func (d dialer) idle(n int, kept *[]net.Conn) (time.Duration, error) {
	began := time.Now()
	for range n {
		c, in, err := d.tunnel()
		if err != nil {
			return 0, err
		}
		*kept = append(*kept, c)
		if _, err := d.request(c, in, "", "/100"); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}
