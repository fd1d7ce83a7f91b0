package sandbox

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// saysWhatToDo wants a *PolicyError that names the field and a remedy, and says
// everything once and in a line that can be read.
func saysWhatToDo(t *testing.T, err error, field string) {
	t.Helper()
	var e *PolicyError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *PolicyError", err)
	}
	if e.Field != field {
		t.Errorf("field %q, want %q (%v)", e.Field, field, err)
	}
	if e.Problem == "" || e.Remedy == "" {
		t.Errorf("problem %q, remedy %q: %v", e.Problem, e.Remedy, err)
	}
	if e.Err != nil && strings.Contains(e.Problem, e.Err.Error()) {
		t.Errorf("it says so twice: %v", err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i)
	}
	return list
}
