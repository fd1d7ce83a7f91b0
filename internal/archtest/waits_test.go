package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"
	"time"
)

// patient are test files with bounds on time between two seconds and a minute, with the reason.
var patient = map[string]string{
	"internal/gitattack/tool_linux_test.go": "git may hang where the attack leads it; the test only counts that",
	"internal/gitattack/user_linux_test.go": "the same of the user's git",
	"internal/proxy/quiet_test.go":          "a body that has no end is left",
}

// TestTestsWaitForFacts: a program of a test that has to stay calls pause in an endless loop, since pause(2) returns on any
// signal and Go's runtime sends SIGURG to its own threads; and a bound on time is a minute at the least, or so short
// that it is meant to pass: what lies between is met on a slow machine.
func TestTestsWaitForFacts(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		looped := map[ast.Node]bool{}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if loop, ok := n.(*ast.ForStmt); ok && loop.Cond == nil {
				ast.Inspect(loop.Body, func(n ast.Node) bool { looped[n] = true; return true })
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := f.path + " " + f.text[call.Pos()-f.syntax.FileStart:call.End()-f.syntax.FileStart]
			switch name := selected(call.Fun); {
			case (name == "unix.Pause" || name == "syscall.Pause") && !looped[call]:
				t.Errorf("%s: stands in no endless loop", at)
			case (name == ".Add" || name == "time.After" || name == "context.WithTimeout" || name == "net.DialTimeout") && len(call.Args) > 0:
				if d := duration(call.Args[len(call.Args)-1]); d >= 2*time.Second && d < time.Minute && patient[f.path] == "" && !madeUp(call) {
					t.Errorf("%s: wait a minute", at)
				}
			}
			return true
		})
	}
}

// selected is PACKAGE.NAME of a function that is selected from a name, and .NAME of any other method.
func selected(fun ast.Expr) string {
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return "." + s.Sel.Name
}

// madeUp reports whether a time is not the clock's: X.Add where X is not time.Now().
func madeUp(call *ast.CallExpr) bool {
	s := call.Fun.(*ast.SelectorExpr)
	if s.Sel.Name != "Add" {
		return false
	}
	of, ok := s.X.(*ast.CallExpr)
	return !ok || selected(of.Fun) != "time.Now"
}

// duration is the value of N * time.UNIT and of time.UNIT; 0: the expression is another one.
func duration(e ast.Expr) time.Duration {
	units := map[string]time.Duration{"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute}
	if product, ok := e.(*ast.BinaryExpr); ok && product.Op == token.MUL {
		n, isNumber := product.X.(*ast.BasicLit)
		if !isNumber {
			return 0
		}
		times, err := strconv.Atoi(n.Value)
		if err != nil {
			return 0
		}
		return time.Duration(times) * units[selected(product.Y)]
	}
	return units[selected(e)]
}
