package interop

import (
	"context"
	"log"
	"os/exec"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mark "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func init() {
	servers["mcp"] = func() {
		s := mcp.NewServer(&mcp.Implementation{Name: "confined", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "confinement", Description: "says what holds the server"},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: confinement()}}}, nil, nil
			})
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Print(err)
		}
	}
}

func TestKernelMCPGoSDK(t *testing.T) {
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: server(t, "mcp").Cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "confinement", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := r.Content[0].(*mcp.TextContent); !ok || text.Text != confined {
		t.Errorf("the server said %v", r.Content)
	}
	if err := session.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestKernelMark3LabsMCP(t *testing.T) {
	c, err := client.NewStdioMCPClientWithOptions("ignored", nil, nil, transport.WithCommandFunc(
		func(context.Context, string, []string, []string) (*exec.Cmd, error) { return server(t, "mcp").Cmd, nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hello := mark.InitializeRequest{}
	hello.Params.ProtocolVersion = mark.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mark.Implementation{Name: "test", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	call := mark.CallToolRequest{}
	call.Params.Name, call.Params.Arguments = "confinement", map[string]any{}
	r, err := c.CallTool(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := r.Content[0].(mark.TextContent); !ok || text.Text != confined {
		t.Errorf("the server said %v", r.Content)
	}
}
