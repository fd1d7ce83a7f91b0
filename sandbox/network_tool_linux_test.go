package sandbox

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
)

// The tool that fetches what it is told to: "URL" through what its environment
// says, "socks HOST:PORT" through the SOCKS proxy.
var _ = offer(programs, "fetch", func(args []string) {
	for _, a := range args {
		fmt.Println(fetch(a))
	}
})

func fetch(target string) string {
	if to, ok := strings.CutPrefix(target, "socks "); ok {
		return fetchSOCKS(to)
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	r, err := client.Get(target)
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return fmt.Sprintf("%d %s", r.StatusCode, strings.ReplaceAll(string(body), "\n", " "))
}

// fetchSOCKS speaks SOCKS5 (RFC 1928) with the proxy that ALL_PROXY's kin name by
// its port, and then HTTP.
func fetchSOCKS(to string) string {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return err.Error()
	}
	n, _ := strconv.Atoi(port)
	proxy := socksAddress()
	c, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		return "error: " + err.Error()
	}
	defer c.Close()
	if err := greetSOCKS(c, proxy.User); err != nil {
		return "error: " + err.Error()
	}
	c.Write(append(append([]byte{5, 1, 0, 3, byte(len(host))}, host...), byte(n>>8), byte(n)))
	answer := make([]byte, 4)
	if _, err := io.ReadFull(c, answer); err != nil {
		return "error: " + err.Error()
	}
	if answer[1] != 0 {
		return fmt.Sprintf("refused with code %d", answer[1])
	}
	io.ReadFull(c, make([]byte, map[byte]int{1: 6, 4: 18}[answer[3]]))
	fmt.Fprintf(c, "GET /socks HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "error: " + err.Error()
	}
	body, _ := io.ReadAll(r.Body)
	return fmt.Sprintf("%d %s", r.StatusCode, body)
}

func greetSOCKS(c net.Conn, user *url.Userinfo) error {
	if user == nil {
		c.Write([]byte{5, 1, 0})
	} else {
		c.Write([]byte{5, 1, 2})
	}
	answer := make([]byte, 2)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	switch {
	case answer[1] == 0 && user == nil:
		return nil
	case answer[1] != 2 || user == nil:
		return fmt.Errorf("method %d", answer[1])
	}
	key, _ := user.Password()
	b := append([]byte{1, byte(len(user.Username()))}, user.Username()...)
	c.Write(append(append(b, byte(len(key))), key...))
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if answer[1] != 0 {
		return fmt.Errorf("the key is refused")
	}
	return nil
}

// socksAddress is where the tool's environment says that the SOCKS proxy is.
func socksAddress() *url.URL {
	if u, err := url.Parse(os.Getenv("HOLDFAST_SOCKS_PROXY")); err == nil && u.Scheme == "socks5h" {
		return u
	}
	return &url.URL{Host: "127.0.0.1:" + strconv.Itoa(compile.PortSOCKS)}
}
