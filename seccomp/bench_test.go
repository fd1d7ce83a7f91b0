package seccomp

import (
	"encoding/json"
	"testing"
)

func BenchmarkCompileDefault(b *testing.B) {
	f := Default()
	for b.Loop() {
		if _, err := f.Compile(AMD64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefault(b *testing.B) {
	for b.Loop() {
		_ = Default()
	}
}

func BenchmarkValidateDefault(b *testing.B) {
	f := Default()
	for b.Loop() {
		if err := f.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadDefaultFromJSON(b *testing.B) {
	text, err := json.Marshal(Default())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var f Filter
		if err := json.Unmarshal(text, &f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvaluate also reports how many instructions the kernel runs for a call, where it
// runs the program at all: what is always allowed, Linux 5.11 and later decide from a bitmap.
func BenchmarkEvaluate(b *testing.B) {
	for _, a := range arches {
		p := mustCompile(b, Default(), a)
		for _, name := range []string{"read", "openat", "futex", "ioctl", "socket", "clone"} {
			b.Run(a.String()+"/"+name, func(b *testing.B) {
				c := mustCall(b, a, name, 1, 1)
				_, steps, _ := p.run(c)
				for b.Loop() {
					if _, err := p.Evaluate(c); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(steps), "instructions")
				b.ReportMetric(float64(p.Len()), "in-program")
			})
		}
	}
}
