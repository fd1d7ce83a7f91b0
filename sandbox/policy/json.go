package policy

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// UnmarshalJSON is encoding/json's, but that a field which no policy has is a [*PolicyError], at every depth: a misspelt
// Hide would hide nothing. Fields that the text does not have stay as they are, and on an error all of p does, but for
// the elements of its lists and maps.
func (p *Policy) UnmarshalJSON(text []byte) error {
	type plain Policy // without this method
	read, d := plain(*p), json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&read)
	if err == nil {
		*p = Policy(read)
		return nil
	}
	quoted, unknown := strings.CutPrefix(err.Error(), "json: unknown field ") // encoding/json has no type for it
	name, notQuoted := strconv.Unquote(quoted)
	if !unknown || notQuoted != nil {
		return err
	}
	remedy := "remove it"
	if near := nearestField(reflect.TypeFor[Policy](), name); near != "" {
		remedy = "is " + near + " meant?"
	}
	return &PolicyError{Field: name, Problem: "a policy has no such field", Remedy: remedy}
}

// nearestField returns the field of t, or of a type in it, that has the most of name at its beginning and end; "": none
// has half of it.
func nearestField(t reflect.Type, name string) (nearest string) {
	most := (len(name) - 1) / 2
	for _, field := range fieldsOf(t, nil, 0) {
		a, b := strings.ToLower(name), strings.ToLower(field)
		same := 0
		for ; same < min(len(a), len(b)) && a[same] == b[same]; same++ {
		}
		for a, b = a[same:], b[same:]; a != "" && b != "" && a[len(a)-1] == b[len(b)-1]; same++ {
			a, b = a[:len(a)-1], b[:len(b)-1]
		}
		if same > most {
			nearest, most = field, same
		}
	}
	return nearest
}

// fieldsOf adds the names of t's fields to those of the types around it, which are at most four.
func fieldsOf(t reflect.Type, names []string, depth int) []string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 4 {
		return names
	}
	for f := range t.Fields() {
		if f.IsExported() && f.Tag.Get("json") != "-" {
			names = fieldsOf(f.Type, append(names, f.Name), depth+1)
		}
	}
	return names
}
