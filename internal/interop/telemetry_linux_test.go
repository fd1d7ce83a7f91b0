package interop

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// spans makes a span of each run that it is told of, with what the run was denied and asked as the span's events.
type spans struct {
	tracer trace.Tracer
	runs   sync.Map // of trace.Span, by the run's number
}

// observe is a policy's Observe.
func (s *spans) observe(e policy.Event) {
	if e.Kind == policy.EventStarted {
		_, span := s.tracer.Start(context.Background(), "sandbox.run", trace.WithTimestamp(e.Time), trace.WithAttributes(
			attribute.String("process.executable.path", e.Started.Tool), attribute.StringSlice("process.command_args", e.Started.Args), attribute.Int("process.pid", e.Started.PID)))
		s.runs.Store(e.Run, span)
		return
	}
	found, _ := s.runs.Load(e.Run)
	span, ok := found.(trace.Span)
	if !ok {
		return
	}
	at := trace.WithTimestamp(e.Time)
	switch e.Kind {
	case policy.EventDenied:
		span.AddEvent("sandbox.denied", at, trace.WithAttributes(attribute.String("sandbox.bound", string(e.Denied.Bound)), attribute.String("sandbox.violation", e.Denied.String())))
	case policy.EventAnswered:
		span.AddEvent("sandbox.answered", at, trace.WithAttributes(attribute.String("server.address", e.Asked.Host), attribute.Bool("sandbox.allow", e.Answer.Allow)))
	case policy.EventEnded:
		s.runs.Delete(e.Run)
		span.SetAttributes(attribute.Int("process.exit.code", e.Ended.ExitCode), attribute.Int("sandbox.denied", e.Ended.Denied), attribute.Float64("process.cpu.time", (e.Ended.UserTime+e.Ended.SystemTime).Seconds()))
		if e.Ended.ExitCode != 0 {
			span.SetStatus(codes.Error, e.Ended.Status)
		}
		span.End(at)
	}
}

// TestKernelOpenTelemetryHasASpanOfEachRun: the events of Policy.Observe, as spans of the real SDK.
func TestKernelOpenTelemetryHasASpanOfEachRun(t *testing.T) {
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
