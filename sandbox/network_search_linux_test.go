package sandbox

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// The tool that looks for secrets, which it is told in hexadecimal, wherever it can
// read: what processes have in their memory, environment and files, and the
// directories in which a sandbox keeps things. While it looks, it has a request
// under way.
var _ = offer(programs, "search", func(args []string) {
	var needles [][]byte
	for _, a := range args[1:] {
		b, _ := hex.DecodeString(a)
		needles = append(needles, b)
	}
	r, err := http.NewRequest("GET", "https://example.com/api/slow", nil)
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		if answer, err := http.DefaultClient.Do(r); err == nil {
			b := make([]byte, 2)
			io.ReadFull(answer.Body, b)
			fmt.Println("under way", string(b))
			defer answer.Body.Close()
		}
	}
	seen := &sought{needles: needles}
	exe, _ := os.Executable()
	own := strconv.Itoa(os.Getpid())
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		for _, name := range []string{"environ", "cmdline", "auxv", "stack", "syscall", "io", "status"} {
			seen.file(filepath.Join(p, name))
		}
		if filepath.Base(p) != own {
			seen.memory(p)
		}
		files, _ := filepath.Glob(p + "/fd/*")
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				seen.file(f)
			}
		}
	}
	for _, dir := range []string{"/run", "/tmp", "/var/tmp", "/dev/shm", os.Getenv("HOME"), os.Getenv("TMPDIR"), filepath.Dir(os.Getenv("SSL_CERT_FILE")), args[0]} {
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Base(p) != filepath.Base(exe) {
				seen.file(p)
			}
			return nil
		})
	}
	fmt.Println("looked through", seen.files > 0, "memories", seen.memories)
})

type sought struct {
	needles         [][]byte
	files, memories int
}

func (s *sought) look(where string, b []byte) {
	for i, n := range s.needles {
		if bytes.Contains(b, n) {
			fmt.Printf("FOUND %d in %s\n", i, where)
		}
	}
}

func (s *sought) file(name string) {
	f, err := os.OpenFile(name, os.O_RDONLY|0o4000, 0) // O_NONBLOCK
	if err != nil {
		return
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 8<<20))
	if len(b) > 0 {
		s.files++
		s.look(name, b)
	}
}

func (s *sought) memory(process string) {
	maps, err := os.ReadFile(process + "/maps")
	if err != nil {
		return
	}
	mem, err := os.Open(process + "/mem")
	if err != nil {
		return
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if n, _ := fmt.Sscanf(line, "%x-%x", &from, &to); n != 2 || to-from > 64<<20 {
			continue
		}
		b := make([]byte, to-from)
		if n, err := mem.ReadAt(b, from); n > 0 || err == nil {
			s.memories++
			s.look(process+"/mem", b[:n])
		}
	}
}

// TestKernelNetworkHidesSecretsFromASearch: neither the secret, in a few spellings,
// nor how a private key begins, is anywhere inside, while a request that has the
// secret is under way.
func TestKernelNetworkHidesSecretsFromASearch(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, func(*Policy) {}, func(t *testing.T, _ *Sandbox, w walls) {
		secret := "drawn-for-this-test-" + rand.Text() // this program has the others'
		t.Setenv("TOKEN", secret)
		t.Setenv("ALIAS", secret)
		s := networkSandbox(t, w, func(p *Policy) {
			credentialed(p)
			p.Network.Credentials[0].Secret = secret
			p.Env.Pass = append(p.Env.Pass, "TOKEN", "ALIAS") // the harness has the secret there
			p.Env.Set = map[string]string{"INDEX": "https://user:" + secret + "@example.com/"}
		})
		n := newInternet(t)
		n.names["example.com"] = "93.184.216.9"
		end := make(chan struct{})
		heard := make(chan string, 2)
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			heard <- r.Header.Get("Authorization")
			io.WriteString(w, "ok"+strings.Repeat(secret, 10))
			w.(http.Flusher).Flush()
			select {
			case <-end:
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		})
		n.handler.Store(&handler)
		defer close(end)
		outside := n.world()
		s.ready.Networks.Outside.Lookup, s.ready.Networks.Outside.Dial = outside.Lookup, outside.Dial
		s.ready.Networks.Outside.Roots = x509.NewCertPool()
		s.ready.Networks.Outside.Roots.AddCert(n.tls.Certificate())
		needles := []string{secret, "Bearer " + secret, "\x02\x01\x01\x04\x20"} // the last: a P-256 key in DER
		dir := t.TempDir()
		args := []string{"search", dir}
		for _, n := range needles {
			args = append(args, hex.EncodeToString([]byte(n)))
		}
		out, r := says(t, s, args...)
		leaky := hostile(t, s, "search", dir, args[2])
		leaky.Env = append(leaky.Environ(), "LEAK="+secret)
		if out := must(leaky.Output()); !strings.Contains(string(out), "FOUND 0") {
			t.Errorf("it does not find what is there: %s", out)
		}
		if strings.Contains(out, "FOUND") || !strings.Contains(out, "under way ok") || !strings.Contains(out, "looked through true") || <-heard != "Bearer "+secret {
			t.Errorf("%s\n%s", out, r)
		}
	})
}
