package clientenv_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"

	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestARelayJoinsItsInputAndOutputToAConnection(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		said, _ := io.ReadAll(c) // until the client has ended
		fmt.Fprintf(c, "SSH-2.0-server heard %s", said)
	}()
	host, port, _ := net.SplitHostPort(server.Addr().String())
	via := relayedProxy(t, proxy.Config{Network: policy.Network{Hosts: []string{server.Addr().String()}}, Key: "k"})

	var out, complaints bytes.Buffer
	if status := clientenv.Relay([]string{host, port}, via, strings.NewReader("SSH-2.0-client"), &out, &complaints); status != 0 {
		t.Fatalf("status %d: %s", status, complaints.String())
	}
	if got, want := out.String(), "SSH-2.0-server heard SSH-2.0-client"; got != want {
		t.Errorf("the relay says %q, want %q", got, want)
	}
	out.Reset()
	if status := clientenv.Relay([]string{host, port, "http://127.0.0.1:1"}, via, strings.NewReader(""), &out, &complaints); status != 1 || out.Len() > 0 {
		t.Errorf("the proxy of the arguments is not the one: status %d, %q", status, out.String())
	}
	if status := clientenv.Relay([]string{"denied.example", "22"}, via, strings.NewReader(""), &out, &complaints); status != 1 || out.Len() > 0 {
		t.Errorf("a denied host: status %d, output %q", status, out.String())
	}
	if said := complaints.String(); !strings.Contains(said, "403") || !strings.Contains(said, "denied.example") {
		t.Errorf("a denied host: %q says neither 403 nor the host", said)
	}
}

func TestARelayWithoutAProxyOrAHostFails(t *testing.T) {
	for _, c := range []struct {
		args  []string
		proxy string
	}{
		{nil, "http://127.0.0.1:1"},
		{[]string{"a.example"}, "http://127.0.0.1:1"},
		{[]string{"a.example", "22"}, ""},
		{[]string{"a.example", "22"}, "::"},
		{[]string{"a.example", "22", ""}, "http://127.0.0.1:1"},
		{[]string{"a.example", "22", "http://127.0.0.1:1", "more"}, "http://127.0.0.1:1"},
	} {
		var out, complaints bytes.Buffer
		if status := clientenv.Relay(c.args, c.proxy, strings.NewReader(""), &out, &complaints); status == 0 || complaints.Len() == 0 {
			t.Errorf("%q by %q: status %d, says %q", c.args, c.proxy, status, complaints.String())
		}
	}
}

// relayedProxy serves a proxy and returns its proxy's URL.
func relayedProxy(t *testing.T, c proxy.Config) string {
	t.Helper()
	g, err := proxy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l, proxy.HTTP)
	t.Cleanup(func() { g.Close() })
	return "http://holdfast:" + c.Key + "@" + l.Addr().String()
}
