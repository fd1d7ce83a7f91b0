package proxy

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestThePlaceholderOfAnEarlierSandboxIsRecognised, where a tool has kept it: the answer and the report say so.
func TestThePlaceholderOfAnEarlierSandboxIsRecognised(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, "hello")
	})
	c := bearer()[0]
	earlier := placeholderOf("an earlier sandbox", c)
	for name, change := range map[string]func(*http.Request){
		"a header": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+earlier) },
		"basic":    func(r *http.Request) { r.SetBasicAuth("x", earlier) },
		"a query":  func(r *http.Request) { r.URL.RawQuery = "k=" + earlier },
	} {
		res, body := w.do(w.inside(), "GET", "https://example.com/", change)
		if res.StatusCode != 403 || !strings.Contains(body, "earlier sandbox") || !strings.Contains(body, "$"+c.Name) || strings.Contains(body, earlier) {
			t.Errorf("%s: %s %s", name, res.Status, body)
		}
	}
	if s := w.g.Summary(); len(s.Violations) != 1 || s.Violations[0].Count != 3 || !strings.Contains(s.Violations[0].Reason, "earlier sandbox") {
		t.Errorf("%+v", s.Violations)
	}
	for _, honest := range []string{"Bearer " + w.placeholder, "Bearer holdfast-configurations", "Bearer other"} {
		if res, body := w.do(w.inside(), "GET", "https://example.com/holdfast-dev/holdfast", func(r *http.Request) { r.Header.Set("Authorization", honest) }); res.StatusCode != 200 {
			t.Errorf("%s: %s %s", honest, res.Status, body)
		}
	}
}

// TestWhatIsChangedOfRequestsIsNoted: a placeholder in another place, and a range. What is as the policy has it is not.
func TestWhatIsChangedOfRequestsIsNoted(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Accept-Ranges", "bytes")
		http.ServeContent(rw, r, "a.txt", time.Time{}, strings.NewReader(strings.Repeat("x", 1000)))
	})
	get := func(change func(*http.Request)) *http.Response {
		res, body := w.do(w.inside(), "GET", "https://example.com/", change)
		if res.StatusCode != 200 || len(body) != 1000 || res.ContentLength != 1000 || res.Header.Get("Accept-Ranges") != "" {
			t.Errorf("%s: %d bytes of %d, %v", res.Status, len(body), res.ContentLength, res.Header)
		}
		return res
	}
	get(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.placeholder) })
	if notes := w.g.Summary().Notes; len(notes) != 0 {
		t.Errorf("%q", notes)
	}
	for range 3 {
		get(func(r *http.Request) { r.Header.Set("Range", "bytes=5-9") })
		get(func(r *http.Request) { r.Header.Set("X-Api-Key", w.placeholder) })
	}
	notes := w.g.Summary().Notes
	if len(notes) != 2 || !strings.Contains(notes[0], "Range") || !strings.Contains(notes[1], "another place") {
		t.Errorf("%q", notes)
	}
}

// TestDenialsCrowdOutNothing: a tool that is denied without end does not hide from Observe, or from the summary, what it was allowed.
func TestDenialsCrowdOutNothing(t *testing.T) {
	release := make(chan struct{})
	var told []policy.Connection
	w := newWorld(t, Config{Network: policy.Network{Observe: func(c policy.Connection) { <-release; told = append(told, c) }}}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {})
	deny := func(host func(int) string) {
		for i := range 3000 {
			w.g.openTunnel(t.Context(), Target{Host: mustHost(t, host(i)), Port: 1, Protocol: "connect"})
		}
	}
	deny(func(int) string { return "denied.example" })
	deny(func(i int) string { return fmt.Sprint(i, ".example") })
	for range 3 {
		if code, body := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\nConnection: close\r\n\r\n"); code != 200 {
			t.Error(code, body)
		}
	}
	deny(func(i int) string { return fmt.Sprint(i, ".other.example") })
	s := w.g.Summary()
	if !slices.Equal(s.Reached, []Reached{{"good.com", 80, 3}}) || s.Elsewhere != 0 {
		t.Errorf("%+v, and %d elsewhere", s.Reached, s.Elsewhere)
	}
	close(release)
	w.g.Close()
	allowed, once, again := 0, 0, 0
	for _, c := range told {
		switch {
		case c.Allowed:
			allowed++
		case c.Host == "denied.example" && c.Again == 0:
			once++
		case c.Host == "denied.example":
			again += c.Again
		}
	}
	if allowed != 3 || once != 1 || again != 2999 {
		t.Errorf("told of %d allowed, and %d times and of %d more of one that was denied", allowed, once, again)
	}
}

// TestReachedHostsAreBounded.
func TestReachedHostsAreBounded(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i := range 150 {
		g.finish(policy.Connection{Host: fmt.Sprint(i, ".example"), Port: 443}, nil)
	}
	if s := g.Summary(); len(s.Reached) != maxReached || s.Elsewhere != 50 || s.Allowed != 150 {
		t.Errorf("%d, %d elsewhere", len(s.Reached), s.Elsewhere)
	}
}
