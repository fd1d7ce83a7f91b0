package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

func TestReplacedRulesDecideTheNextRequestOfAConnection(t *testing.T) {
	w := newWorld(t, Config{}, "old.example")
	for _, name := range []string{"old.example", "new.example"} {
		w.web(name, 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) })
	}
	c, in := w.raw("")
	ask := func(host string) (int, string) {
		io.WriteString(c, "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		return answerOf(in)
	}
	allowed := func(host string, status int) {
		t.Helper()
		if got, text := ask(host); got != status {
			t.Errorf("%s: %d %s; want %d", host, got, text, status)
		}
	}
	allowed("old.example", http.StatusOK)
	allowed("new.example", http.StatusForbidden)
	r, err := hostrules.Compile([]string{"new.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.g.SetRules(r)
	allowed("old.example", http.StatusForbidden) // although a connection to it is kept
	allowed("new.example", http.StatusOK)
	if d := w.g.Allowed(mustHost(t, "new.example"), 80); d.Outcome != hostrules.Allow {
		t.Errorf("Allowed says %+v", d)
	}
}
