package main

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
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
		var about attribute.KeyValue
		if e.Asked != nil {
			about = attribute.String("server.address", e.Asked.Host)
		} else {
			about = attribute.String("file.path", e.File.Path)
		}
		span.AddEvent("sandbox.answered", at, trace.WithAttributes(about, attribute.Bool("sandbox.allow", e.Answer.Allow)))
	case policy.EventEnded:
		s.runs.Delete(e.Run)
		span.SetAttributes(attribute.Int("process.exit.code", e.Ended.ExitCode), attribute.Int("sandbox.denied", e.Ended.Denied), attribute.Float64("process.cpu.time", (e.Ended.UserTime+e.Ended.SystemTime).Seconds()))
		if e.Ended.ExitCode != 0 {
			span.SetStatus(codes.Error, e.Ended.Status)
		}
		span.End(at)
	}
}
