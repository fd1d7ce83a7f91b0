package interop

import (
	"net/rpc"
	"testing"

	"github.com/hashicorp/go-plugin"
)

var handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "HOLDFAST_INTEROP", MagicCookieValue: "yes"}

func init() {
	servers["plugin"] = func() {
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: handshake, Plugins: plugin.PluginSet{"confinement": &confinementPlugin{}}})
	}
}

type confinementPlugin struct{}

func (*confinementPlugin) Server(*plugin.MuxBroker) (any, error) { return &confinementServer{}, nil }

func (*confinementPlugin) Client(_ *plugin.MuxBroker, c *rpc.Client) (any, error) { return c, nil }

type confinementServer struct{}

// Say answers a call.
func (*confinementServer) Say(_ struct{}, answer *string) error {
	*answer = confinement()
	return nil
}

func TestKernelGoPlugin(t *testing.T) {
	cmd := server(t, "plugin").Cmd
	cmd.Env = append(cmd.Environ(), "TMPDIR="+cmd.Dir) // where the plugin makes its socket: both sides see it
	c := plugin.NewClient(&plugin.ClientConfig{HandshakeConfig: handshake, Plugins: plugin.PluginSet{"confinement": &confinementPlugin{}}, Cmd: cmd, SkipHostEnv: true})
	defer c.Kill()
	protocol, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense("confinement")
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	if err := raw.(*rpc.Client).Call("Plugin.Say", struct{}{}, &answer); err != nil {
		t.Fatal(err)
	}
	if answer != confined {
		t.Errorf("the plugin said %q", answer)
	}
}
