package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// host is what the server of this program is called inside.
const host = "example.com" // httptest's certificate has that name

const token = "the real token"

// show fetches from a server of its own and prints what came of each attempt.
func show(dir string) error {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			fmt.Fprintf(w, "the server has seen %q\n", r.Header.Get("Authorization")) // as a careless one would
			return
		}
		fmt.Fprintln(w, "the server has seen no token")
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		return err
	}
	os.Setenv("WEBFETCH_TOKEN", token)
	p := policyFor(dir, []string{host, u.Host}, "", false)
	p.Network.Credentials = []policy.Credential{{Name: "WEBFETCH_TOKEN", Secret: token, Hosts: []string{host}, Place: policy.PlaceBearer}}
	p.Network.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	p.Network.Authorities = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	failed := 0
	for _, a := range []struct {
		what, script, url string
		good              func(out string, err error) bool
	}{
		{"fetch with the token", `curl -sS --fail-with-body -H "Authorization: Bearer $WEBFETCH_TOKEN" "$1"`, "https://" + host + ":" + u.Port(),
			func(out string, err error) bool {
				return err == nil && strings.Contains(out, "the server has seen \"Bearer")
			}},
		{"fetch without it", `curl -sS --fail-with-body "$1"`, "https://" + host + ":" + u.Port(),
			func(out string, err error) bool { return err == nil && strings.Contains(out, "seen no token") }},
		{"read the token", `env; cat /proc/self/environ`, "", func(out string, err error) bool { return err == nil }},
		{"fetch from another host", `curl -sS --fail-with-body "$1"`, "http://elsewhere.example:" + u.Port(),
			func(out string, err error) bool { return err != nil && strings.Contains(out, "elsewhere.example") }},
		{"connect past the proxy", `curl -sS -m 5 --noproxy '*' -k "$1"`, server.URL, func(out string, err error) bool { return err != nil }},
	} {
		out, report, err := curl(dir, p, a.script, a.url)
		if report == nil {
			return err
		}
		verdict := "as it should"
		if !a.good(out, err) || strings.Contains(out, token) {
			verdict = "NOT as it should"
			failed++
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		last := lines[len(lines)-1]
		fmt.Printf("%-24s %s: %s\n", a.what, verdict, last[:min(len(last), 100)])
	}
	if failed > 0 {
		return errors.New("something came out otherwise")
	}
	return nil
}
