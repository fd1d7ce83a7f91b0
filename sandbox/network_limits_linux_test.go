package sandbox

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The tool that asks for a denied host on as many connections at once as it is told, keeps
// them all, says how it was answered, and asks by SOCKS then.
var _ = offer(programs, "crowd", func(args []string) {
	n, _ := strconv.Atoi(args[0])
	proxy, _ := url.Parse(os.Getenv("http_proxy"))
	answers := map[string]int{}
	var said string
	for range n {
		c, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.WriteString(c, "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n")
		if password, ok := proxy.User.Password(); ok {
			fmt.Fprintf(c, "Proxy-Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte("holdfast:"+password)))
		}
		io.WriteString(c, "\r\n")
		r := bufio.NewReader(c)
		line, _ := r.ReadString('\n')
		fields := append(strings.Fields(line), "", "")
		answers[fields[1]]++
		if fields[1] == "503" {
			b, _ := io.ReadAll(r)
			said = string(b)
		}
	}
	fmt.Println(answers, fetch("socks allowed.example:80"), said)
})

// limited runs a tool under limits in every set of walls, and returns what it said and the
// one remedy of all its violations that is about a limit.
func limited(t *testing.T, change func(p *Policy), tool []string, check func(t *testing.T, out string, r *Report)) {
	inNetwork(t, change, func(t *testing.T, s *Sandbox, w walls) {
		says(t, s, "fetch") // all that is opened once
		before := len(openDescriptors(t))
		out, r := says(t, s, tool...)
		check(t, out, r)
		// The servers outside, which this process has too, notice the end by themselves.
		for until := time.Now().Add(time.Minute); len(openDescriptors(t)) > before; runtime.Gosched() {
			if time.Now().After(until) {
				t.Fatalf("%d descriptors before, %d after", before, len(openDescriptors(t)))
			}
		}
		for _, v := range r.Violations {
			if v.Why == "" || v.Remedy == "" {
				t.Errorf("%+v", v)
			}
		}
	})
}

func openDescriptors(t *testing.T) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// remedied reports whether one of the violations is remedied so.
func remedied(r *Report, remedy string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Remedy == remedy })
}

func TestKernelNetworkSaysThatConnectionsAreTooMany(t *testing.T) {
	kerneltest.Long(t)
	limited(t, func(p *Policy) { allowedExample(p); p.Network.Limits.Connections = 20 }, []string{"crowd", "25"}, func(t *testing.T, out string, r *Report) {
		for _, want := range []string{"map[403:20 503:5] refused with code 2", "limit on connections is reached: 20 are open", "Network.Limits.Connections", "try again when others have ended"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in %s", want, out)
			}
		}
		if !remedied(r, "raise Network.Limits.Connections") || denials(r) != 26 {
			t.Errorf("%s", r)
		}
	})
}

func TestKernelNetworkSaysThatBytesAreSpent(t *testing.T) {
	kerneltest.Long(t)
	limited(t, func(p *Policy) { allowedExample(p); p.Network.Limits.Bytes = 1000 }, append([]string{"fetch"}, slices.Repeat([]string{"http://allowed.example/", "socks allowed.example:80"}, 10)...), func(t *testing.T, out string, r *Report) {
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 20 || lines[0] != "200 served GET allowed.example /" || lines[19] != "refused with code 2" {
			t.Errorf("%s", out)
		}
		for _, want := range []string{"403 Refused", "limit on bytes is reached", "Network.Limits.Bytes"} {
			if !strings.Contains(lines[18], want) {
				t.Errorf("%q is not in %s", want, lines[18])
			}
		}
		if !remedied(r, "raise Network.Limits.Bytes") {
			t.Errorf("%s", r)
		}
	})
}

func TestKernelNetworkSaysThatNamesAreTooMany(t *testing.T) {
	kerneltest.Long(t)
	for name, change := range map[string]func(p *Policy){
		"below a wildcard": func(p *Policy) { p.Network.Hosts = []string{"*.allowed.example"} },
		"that Decide allows": func(p *Policy) {
			p.Network.Decide = func(context.Context, policy.Request) policy.Verdict { return policy.Verdict{Allow: true} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			limited(t, func(p *Policy) { change(p); p.Network.Limits.Names = 2 },
				[]string{"fetch", "http://sub.allowed.example/", "http://b.allowed.example/", "http://c.allowed.example/", "http://sub.allowed.example/"}, func(t *testing.T, out string, r *Report) {
					lines := strings.Split(strings.TrimSpace(out), "\n")
					if len(lines) != 4 || !strings.HasPrefix(lines[0], "200 ") || !strings.HasPrefix(lines[1], "502 ") || !strings.HasPrefix(lines[3], "200 ") {
						t.Fatalf("%s", out)
					}
					for _, want := range []string{"403 Refused", "2 names were asked for", "Network.Limits.Names"} {
						if !strings.Contains(lines[2], want) {
							t.Errorf("%q is not in %s", want, lines[2])
						}
					}
					if !remedied(r, "raise Network.Limits.Names") || len(r.Violations) != 1 {
						t.Errorf("%s", r)
					}
				})
		})
	}
}

// denials counts them, of all kinds.
func denials(r *Report) (n int) {
	for _, v := range r.Violations {
		n += v.Count
	}
	return n
}

// TestKernelNetworkCountsViolationsOfAKind: none is left out for another that was denied before.
func TestKernelNetworkCountsViolationsOfAKind(t *testing.T) {
	kerneltest.Long(t)
	limited(t, allowedExample, []string{"crowd", "150"}, func(t *testing.T, out string, r *Report) {
		if n := denials(r); n != 150 || len(r.Violations) != 1 || !strings.Contains(out, "map[403:150] 200 served") {
			t.Errorf("%d violations, %s", n, out)
		}
		if text := r.String(); strings.Contains(text, "more than are listed") || strings.Count(text, "denied 150 times: http denied.example:80") != 1 {
			t.Errorf("%s", text)
		}
	})
}
