package supervisor

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

const indexHeader = 62 // bytes before the name of an entry, with names of objects of SHA-1

// indexEntry is an entry of version 2 whose flags may say another length than its name has, up to the next multiple of 8.
func indexEntry(blob []byte, length int, name string) []byte {
	e := make([]byte, indexHeader, 256)
	binary.BigEndian.PutUint32(e[24:], 0o100755)
	copy(e[40:], blob)
	binary.BigEndian.PutUint16(e[60:], uint16(length))
	e = append(e, name...)
	return append(e, make([]byte, 8-len(e)%8)...)
}

// indexOf is an index of version 2 that says it has these many entries.
func indexOf(count int, parts ...[]byte) []byte {
	b := append([]byte("DIRC\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(count))...)
	b = append(b, bytes.Join(parts, nil)...)
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func extension(kind string, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
}

// endOfEntries is the extension EOIE; its checksum is that of the kinds and sizes before it.
func endOfEntries(offset int, before ...[]byte) []byte {
	h := sha1.New()
	for _, e := range before {
		h.Write(e[:8])
	}
	return extension("EOIE", h.Sum(binary.BigEndian.AppendUint32(nil, uint32(offset))))
}

// twoReadings is an index of two entries: a reader that takes a NUL for a name's end finds "a" and a name without a path; git, which
// goes by the flags, finds "a", with eight more bytes, and name. ok is false if blob's bytes do not allow it.
func twoReadings(blob []byte, name string) (index []byte, ok bool) {
	const shift = 8
	second := indexEntry(blob, 0x8000|len(name), name)
	copy(second[:24], bytes.Repeat([]byte("t"), 24))
	copy(second[28:40], bytes.Repeat([]byte("u"), 12))
	flags := second[indexHeader-shift-2:]
	ok = flags[0]&0x40 == 0 && !bytes.ContainsAny(second[indexHeader-shift:indexHeader], "\x00\\/")
	return indexOf(2, indexEntry(blob, shift+1, "a"), make([]byte, shift), second), ok
}

// TestAnIndexIsReadAsGitReadsIt has files that a simpler reader takes for harmless, and their honest twins.
func TestAnIndexIsReadAsGitReadsIt(t *testing.T) {
	var blob [20]byte
	for i := range blob {
		blob[i] = '0'
	}
	a, long := indexEntry(blob[:], 1, "a"), strings.Repeat("n", 300)
	forged, ok := twoReadings(blob[:], ".git/hooks/post-checkout")
	if !ok {
		t.Fatal("the forged index has no second reading")
	}
	tree, end := extension("TREE", []byte("\x00-1 0\n")), 12+len(a)
	blocks := func(numbers ...int) []byte {
		b := []byte{0, 0, 0, 1}
		for _, n := range numbers {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return extension("IEOT", b)
	}
	two := 12 + 2*len(a)
	withBlocks := func(numbers ...int) []byte {
		table := blocks(numbers...)
		return indexOf(2, a, indexEntry(blob[:], 1, "b"), tree, table, endOfEntries(two, tree, table))
	}
	inside := extension("XXXX", endOfEntries(12, tree))
	behind := append(extension("XXXX", []byte("E")), append([]byte("OIE\x00\x00\x00\x18"), make([]byte, 24)...)...)
	for _, c := range []struct {
		name     string
		index    []byte
		harmless bool
	}{
		{"an entry", indexOf(1, a), true},
		{"a long name", indexOf(1, indexEntry(blob[:], len(long), long)), true},
		{"extensions", indexOf(1, a, tree, extension("UNTR", make([]byte, 100))), true},
		{"an end of entries where they end", indexOf(1, a, tree, endOfEntries(end, tree)), true},
		{"flags that say a greater length than the name's", forged, false},
		{"a length that is too great", indexOf(1, indexEntry(blob[:], 2, "a")), false},
		{"a length that is too small", indexOf(1, indexEntry(blob[:], 1, "ab")), false},
		{"blocks as the entries are", withBlocks(12, 1, 12+len(a), 1), true},
		{"one block", withBlocks(12, 2), true},
		{"a block that begins in an entry", withBlocks(12, 1, 20+len(a), 1), false},
		{"a block that begins before its first entry", withBlocks(12, 1, 12, 1), false},
		{"blocks of fewer entries", withBlocks(12, 1), false},
		{"blocks of more entries", withBlocks(12, 1, 12+len(a), 2), false},
		{"a block of none", withBlocks(12, 0, 12, 2), false},
		{"half a block", withBlocks(12, 2, 12), false},
		{"two tables of blocks", indexOf(1, a, blocks(12, 1), blocks(12, 1), endOfEntries(end, blocks(12, 1), blocks(12, 1))), false},
		{"an end of entries that is elsewhere", indexOf(1, a, tree, endOfEntries(12, tree)), false},
		{"an end of entries in another extension", indexOf(1, a, inside), false},
		{"an end of entries that begins in one extension and ends in the next", indexOf(1, a, behind), false},
		{"an extension longer than the file before the end", indexOf(1, a, []byte("TREE\x00\x00\x10\x00"), endOfEntries(end)), false},
	} {
		file := filepath.Join(t.TempDir(), "index")
		if err := os.WriteFile(file, c.index, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		s := new(State)
		if got := s.harmlessIndex(int(f.Fd()), 20); got != c.harmless {
			t.Errorf("%s: harmless is %v", c.name, got)
		}
		f.Close()
	}
}

// TestKernelAnIndexOfTwoReadings puts a forged index in the place of the user's, from inside; git checks out what is in it outside.
func TestKernelAnIndexOfTwoReadings(t *testing.T) {
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, `git init -q .; echo a >a; git add a; git commit -qm one`)
			var forged []byte
			for i, ok := 0, false; !ok; i++ {
				program := strings.Repeat(" ", i)
				script(t, dir, uid, `printf '#!/bin/sh\ntouch PWNED\n#`+program+`' >h; git hash-object -w h >id; rm h`)
				id, _ := os.ReadFile(filepath.Join(dir, "id"))
				blob, err := hex.DecodeString(strings.TrimSpace(string(id)))
				if err != nil || i > 100 {
					t.Fatalf("%q: %v", id, err)
				}
				forged, ok = twoReadings(blob, ".git/hooks/post-checkout")
			}
			if err := os.WriteFile(filepath.Join(dir, "forged"), forged, 0o644); err != nil {
				t.Fatal(err)
			}
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Env: []string{roleEnv + "=act"}, Argv: []string{"bash", "-c",
				`cp forged i; mv i .git/index; set -C; cat forged >.git/index.lock; mv .git/index.lock .git/index; rm -f .git/index.lock; git status --porcelain`}})
			if !strings.Contains(out, "denied") {
				t.Errorf("inside: nothing was refused:\n%s", out)
			}
			end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `git checkout .; git checkout -q HEAD; [ ! -e .git/hooks/post-checkout ] && [ ! -e PWNED ]`}})
			if code != 0 {
				t.Errorf("a program of the tool's is in place:\n%s\ninside:\n%s", end, out)
			}
		})
	}
}

// TestKernelAnIndexWithItsEndIsWritten is what git writes with index.threads, as scalar sets it.
func TestKernelAnIndexWithItsEndIsWritten(t *testing.T) {
	kerneltest.Long(t)
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Env: []string{roleEnv + "=act"}, Argv: []string{"bash", "-ec",
				`for h in sha1 sha256; do git init -q --object-format=$h $h; cd $h; for i in 1 2 3; do echo $i >$i; git -c index.threads=2 add $i; git -c index.threads=2 commit -qm $i; git -c index.threads=2 update-index --index-version $((i+1)); git -c index.threads=2 diff --cached --quiet; done; grep -q IEOT .git/index; grep -q EOIE .git/index; git status --porcelain | wc -l | grep -qx 0; cd ..; done`}})
			if code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}
