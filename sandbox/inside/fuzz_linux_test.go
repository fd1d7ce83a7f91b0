package inside

import "testing"

func FuzzAnswer(f *testing.F) {
	f.Add(answer{errno: 2, op: "unlinkat", path: "a/b"}.encode())
	f.Add(request{op: opRename, name: "a", other: "b"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeAnswer(b); err == nil && string(a.encode()) != string(b) {
			t.Errorf("%q is read as %+v", b, a)
		}
		if r, err := decodeRequest(b); err == nil && string(r.encode()) != string(b) {
			t.Errorf("%q is read as %+v", b, r)
		}
	})
}
