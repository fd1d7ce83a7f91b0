package guard

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkCreate reports the time of one open with O_CREAT and close, with and without a guard.
func BenchmarkCreate(b *testing.B) {
	for name, silent := range map[string]bool{"guarded": false, "unguarded": true} {
		b.Run(name, func(b *testing.B) {
			total, n := 0, 0
			for b.Loop() {
				dir, rules := workspace(b, 0)
				out, code := run(b, job{Rules: rules, Dir: dir, Silent: silent, Argv: []string{"bash", "-c", `"$SELF" create "$PWD/f"`}, Env: []string{roleEnv + "=act"}})
				ns, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(out), "NS "))
				if err != nil || code != 0 {
					b.Fatal(out, err)
				}
				total, n = total+ns, n+1
			}
			b.ReportMetric(float64(total)/float64(n), "ns/create")
		})
	}
}
