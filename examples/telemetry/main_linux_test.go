package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }

// TestKernelTelemetryHasASpanOfEachRun: the events of Policy.Observe, as spans of the real SDK.
func TestKernelTelemetryHasASpanOfEachRun(t *testing.T) {
	exported := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exported))
	told := &spans{tracer: provider.Tracer("holdfast")}
	p := sandbox.Workspace(t.TempDir())
	p.Observe = told.observe
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.Command("sh", "-c", "true >.bashrc; exit 0").CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	if err := s.Command("sh", "-c", "exit 3").Run(); err == nil {
		t.Error("no exit status")
	}
	list := exported.GetSpans()
	if len(list) != 2 {
		t.Fatalf("%d spans", len(list))
	}
	first, second := list[0], list[1]
	if first.Name != "sandbox.run" || len(first.Events) != 1 || first.Events[0].Name != "sandbox.denied" || first.Status.Code != codes.Unset || !first.EndTime.After(first.StartTime) {
		t.Errorf("%+v", first)
	}
	if len(second.Events) != 0 || second.Status.Code != codes.Error || second.Status.Description != "exit status 3" {
		t.Errorf("%+v", second)
	}
}

// TestKernelTelemetryPrintsTheSpan, with the status of the command as the program's.
func TestKernelTelemetryPrintsTheSpan(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	status, err := run(&out, []string{"sh", "-c", "true >.bashrc; exit 3"})
	if err != nil || status != 3 {
		t.Fatalf("status %d, %v\n%s", status, err, out.Bytes())
	}
	var span struct {
		Name   string
		Status struct{ Description string }
		Events []struct{ Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &span); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if span.Name != "sandbox.run" || span.Status.Description != "exit status 3" || len(span.Events) != 1 || span.Events[0].Name != "sandbox.denied" {
		t.Errorf("%+v", span)
	}
}
