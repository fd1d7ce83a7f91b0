// Package sbpl reads the profiles of macOS's sandbox-exec, says what they mean, and
// makes policies of them that Linux holds.
//
//	p, err := sbpl.Parse("agent.sb", text, map[string]string{"WS": "/src/project"})
//	if err != nil {
//		return err // unbound variable: setenv at agent.sb, line 5
//	}
//	fmt.Println(p.Evaluate("file-write-create", "/src/project/a").Why)
//	policy, rules, err := p.Policy(sbpl.Options{Strict: true})
package sbpl
