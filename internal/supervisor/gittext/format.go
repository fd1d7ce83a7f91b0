package gittext

// The names of objects in an index have the size that the repository's configuration says (gitrepository-layout(5),
// extensions.objectFormat): one judged by another size would have other names of files. So the format stays while an index
// stands, and an index is refused where the configuration does not say it plainly.

// The sizes of an object's name.
const (
	SHA1Size    = 20
	SHA256Size  = 32
	UnknownSize = 0
)

// IDSize returns the size of an object's name in the repository with this configuration. Both keys that it depends on
// (setup.c of git, read_repository_format) may stand in it in plain lines alone, each with the same value.
//
//go:norace
func (t *Text) IDSize() uint {
	const format, version = "objectformat", "repositoryformatversion"
	sha1, sha256, ones := uint(0), uint(0), uint(0)
	t.Rewind()
	for t.Next() {
		fine := t.Judge() == Harmless && t.known && !t.sub && t.key >= t.at && t.keyEnd <= t.end
		switch {
		case !fine:
		case t.is(t.name, t.nameEnd, "extensions") && t.is(t.key, t.keyEnd, format) && t.is(t.val, t.end, "sha256"):
			sha256++
		case t.is(t.name, t.nameEnd, "extensions") && t.is(t.key, t.keyEnd, format) && t.is(t.val, t.end, "sha1"):
			sha1++
		case t.is(t.name, t.nameEnd, "core") && t.is(t.key, t.keyEnd, version) && t.is(t.val, t.end, "1"):
			ones++
		}
	}
	switch all := t.count(format); {
	case all == sha1:
		return SHA1Size // none of them, mostly
	case all == sha256 && ones > 0 && ones == t.count(version):
		return SHA256Size
	}
	return UnknownSize
}

// count returns how often the word of small letters stands in the text, in any case and any place.
//
//go:norace
func (t *Text) count(word string) uint {
	n := uint(0)
	for i := uint(0); i < t.N; i++ {
		if t.is(i, i+uint(len(word)), word) {
			n++
		}
	}
	return n
}
