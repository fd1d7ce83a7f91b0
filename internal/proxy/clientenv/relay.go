package clientenv

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// RelayName is the name under which a sandbox shows the harness's own program to
// the tool. Executed under it, on Linux, a program is no harness but a relay: its
// standard input and output are joined to a connection that an HTTP proxy makes to
// the host and port in its arguments. The proxy is the third argument, so that an
// environment that was emptied on the way does not matter, or else the environment's,
// where a key belongs. That is what ssh wants of a ProxyCommand.
const RelayName = "holdfast-connect"

// Relay carries one connection and returns the exit status. It ends when the
// server has closed; when the input ends, the server is told.
func Relay(args []string, proxy string, in io.Reader, out, complaints io.Writer) int {
	switch len(args) {
	case 2:
	case 3:
		proxy = args[2]
	default:
		fmt.Fprintf(complaints, "usage: %s HOST PORT [PROXY]\n", RelayName)
		return 2
	}
	conn, rest, err := connectBy(proxy, net.JoinHostPort(args[0], args[1]))
	if err != nil {
		fmt.Fprintf(complaints, "%s: %v\n", RelayName, err)
		return 1
	}
	defer conn.Close()
	go func() {
		io.Copy(conn, in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}()
	if _, err := io.Copy(out, rest); err != nil {
		fmt.Fprintf(complaints, "%s: %v\n", RelayName, err)
		return 1
	}
	return 0
}

// connectBy asks an HTTP proxy for a tunnel. A refusal's own words are the error.
func connectBy(proxy, to string) (net.Conn, io.Reader, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("no proxy is named, in the third argument or in HTTPS_PROXY")
	}
	conn, err := net.DialTimeout("tcp", u.Host, 30*time.Second)
	if err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(approvalTimeout))
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{"User-Agent": {RelayName}}}
	if u.User != nil {
		password, _ := u.User.Password()
		r.SetBasicAuth(u.User.Username(), password)
		r.Header["Proxy-Authorization"] = r.Header["Authorization"]
		r.Header.Del("Authorization")
	}
	reader := bufio.NewReader(conn)
	err = r.Write(conn)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(reader, r)
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		err = fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	conn.SetDeadline(time.Time{})
	return conn, reader, nil
}

// approvalTimeout is how long the proxy may take: a person may have to be asked.
const approvalTimeout = time.Hour
