// Telemetry runs a command in a sandbox and prints OpenTelemetry's span of it, with what it was denied and asked as the span's
// events:
//
//	telemetry [COMMAND [ARG...]]
//
// It is a separate module, so that the SDK is no dependency of Holdfast. A harness has an exporter already: it takes
// spans.go as it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/sandbox"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"sh", "-c", "echo evil >.bashrc"}
	}
	status, err := run(os.Stdout, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
	}
	os.Exit(status)
}

// run runs a command in the working directory, and writes its span to out. It returns the command's exit status.
func run(out io.Writer, args []string) (status int, err error) {
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(out), stdouttrace.WithPrettyPrint())
	if err != nil {
		return 1, err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	defer func() { err = errors.Join(err, provider.Shutdown(context.Background())) }()

	p := sandbox.Workspace(".")
	p.Observe = (&spans{tracer: provider.Tracer("holdfast")}).observe
	s, err := sandbox.New(p)
	if err != nil {
		return 1, err
	}
	c := s.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stderr, os.Stderr
	err = c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
