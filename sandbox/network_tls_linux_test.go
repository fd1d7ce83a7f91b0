package sandbox

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

const theSecret = "s3cr3t-of-the-harness"

// credentialed is a policy with a credential for one host and a rule for its
// requests.
func credentialed(p *Policy) {
	p.Network.Hosts = []string{"example.com:443", "allowed.example"}
	p.Network.Credentials = []policy.Credential{{Name: "TOKEN", Secret: theSecret, Hosts: []string{"example.com:443"}, Place: policy.PlaceBearer}}
	p.Network.Requests = []policy.RequestRule{{Host: "example.com:443", Methods: []string{"GET"}, Paths: []string{"/api/"}}}
}

// The tool that asks with what its environment has for a token, trusting what its
// environment says, and looks for the secret.
var _ = offer(programs, "ask", func(args []string) {
	for _, target := range args {
		method, target, _ := strings.Cut(target, " ")
		r, err := http.NewRequest(method, target, nil)
		if err != nil {
			fmt.Println(err)
			continue
		}
		r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.ReplaceAll(string(body), "\n", " "))
	}
	fmt.Println(strings.Join(os.Environ(), "\n"))
	bundle, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	fmt.Println(len(bundle) > 0, bytes.Contains(bundle, []byte("PRIVATE")), err)
})

func TestKernelNetworkKeepsSecretsOutside(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, credentialed, func(t *testing.T, s *Sandbox, w walls) {
		var mu sync.Mutex
		var heard []string
		n := newInternet(t)
		n.names["example.com"] = "93.184.216.9"
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
			fmt.Fprintf(w, "served %s %s", r.URL.Path, r.Header.Get("Authorization"))
		})
		n.handler.Store(&handler)
		outside := n.world()
		s.ready.Networks.Outside.Lookup, s.ready.Networks.Outside.Dial = outside.Lookup, outside.Dial
		s.ready.Networks.Outside.Roots = x509.NewCertPool()
		s.ready.Networks.Outside.Roots.AddCert(n.tls.Certificate())
		out, r := says(t, s, "ask", "GET https://example.com/api/a", "POST https://example.com/api/a", "GET https://example.com/other", "GET http://allowed.example/api/b")
		lines := strings.Split(out, "\n")
		if !strings.HasPrefix(lines[0], "200 served /api/a") || !strings.HasPrefix(lines[1], "403 ") || !strings.HasPrefix(lines[2], "403 ") {
			t.Errorf("got\n%s\n%s", strings.Join(lines[:4], "\n"), r)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(heard) == 0 || heard[0] != "GET /api/a Bearer "+theSecret {
			t.Errorf("the server heard %q", heard)
		}
		for _, h := range heard[min(1, len(heard)):] {
			if strings.Contains(h, theSecret) {
				t.Errorf("another request has the secret: %q", h)
			}
		}
		for what, text := range map[string]string{"the tool": out, "the report": r.String() + string(must(r.JSON())), "Explain": s.Explain(), "the policy": fmt.Sprintf("%+v", s.ready.Policy)} {
			if strings.Contains(text, theSecret) {
				t.Errorf("%s has the secret:\n%s", what, text)
			}
		}
		if !strings.Contains(out, "TOKEN=") || !strings.Contains(out, "\ntrue false <nil>") {
			t.Errorf("the tool's environment, and its bundle:\n%s", out)
		}
		for _, remedy := range []string{"a rule to Network.Requests that has POST /api/a of example.com:443", `"allowed.example:80" to the Hosts of the credential TOKEN`} {
			if !strings.Contains(r.String(), "(rule ") || !strings.Contains(r.String(), "to allow it: add "+remedy) {
				t.Errorf("no remedy %q in\n%s", remedy, r)
			}
		}
	})
}

// TestKernelNetworkTrustsItsOwnBundle: curl, as a tool that has nothing of this
// program's.
func TestKernelNetworkTrustsItsOwnBundle(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.Command("curl"))
	inNetwork(t, credentialed, func(t *testing.T, s *Sandbox, w walls) {
		n := newInternet(t)
		n.names["example.com"] = "93.184.216.9"
		outside := n.world()
		s.ready.Networks.Outside.Lookup, s.ready.Networks.Outside.Dial = outside.Lookup, outside.Dial
		s.ready.Networks.Outside.Roots = x509.NewCertPool()
		s.ready.Networks.Outside.Roots.AddCert(n.tls.Certificate())
		c := s.Command(must(exec.LookPath("curl")), "-sS", "https://example.com/api/c", "https://example.com/no", "https://allowed.example/")
		c.Dir = "/"
		out, err := c.CombinedOutput()
		if !strings.Contains(string(out), "served GET example.com /api/c") || strings.Contains(string(out), "served GET example.com /no") || err == nil {
			t.Errorf("%v\n%s\n%s", err, out, c.Report())
		}
	})
}

// TestKernelNetworkLeavesNoBundle: what a run without a place of its own has on
// the host's disk is gone afterwards.
func TestKernelNetworkLeavesNoBundle(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		s := networkSandbox(t, w, func(p *Policy) {
			credentialed(p)
			p.Files.Read = append(p.Files.Read, dir)
		})
		c := s.Command("/bin/sh", "-c", `test -s "$SSL_CERT_FILE" && echo "$SSL_CERT_FILE"`)
		c.Dir = "/"
		out, err := c.CombinedOutput()
		at := strings.TrimSpace(string(out))
		if err != nil || at == "" {
			t.Fatalf("%v, %q\n%s", err, out, c.Report())
		}
		if pathrule.Within(at, dir) == s.ready.Plan.Namespaces.Mount {
			t.Errorf("the bundle was at %s", at)
		}
		if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}
