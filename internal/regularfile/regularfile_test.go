package regularfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", dir+"/link"); err != nil {
		t.Skip("needs links:", err)
	}
	for _, c := range []struct {
		name string
		most int64
		want error
	}{
		{"file", 4, nil}, {"link", 4, nil}, {"file", 3, ErrTooLarge}, {".", 4, ErrNotRegular}, {"absent", 4, fs.ErrNotExist},
	} {
		text, err := Read(filepath.Join(dir, c.name), c.most)
		var at *fs.PathError
		if !errors.Is(err, c.want) || err == nil && string(text) != "four" || err != nil && !errors.As(err, &at) {
			t.Errorf("%s, at most %d bytes: %q, %v", c.name, c.most, text, err)
		}
	}
}

func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if names, err := d.Readdirnames(-1); len(names) != 1 || err != nil {
		t.Error(names, err)
	}
}
