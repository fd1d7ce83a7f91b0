package supervisor

// The names of objects in an index have the size that the repository's configuration says (gitrepository-layout(5),
// extensions.objectFormat): one judged by another size would have other names of files. So the format stays while an index
// stands, and an index is refused where the configuration does not say it plainly.

const (
	sha1Size    = 20
	sha256Size  = 32
	unknownSize = 0
)

// idSize returns the size of an object's name in the repository with this configuration. Both keys that it depends on
// (setup.c of git, read_repository_format) may stand in it in plain lines alone, each with the same value.
//
//go:norace
func (t *text) idSize() uint {
	const format, version = "objectformat", "repositoryformatversion"
	sha1, sha256, ones := uint(0), uint(0), uint(0)
	t.rewind()
	for t.pos < t.n {
		t.nextLine()
		fine := t.harmless() && t.known && !t.sub && t.key >= t.at && t.keyEnd <= t.end
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
		return sha1Size // none of them, mostly
	case all == sha256 && ones > 0 && ones == t.count(version):
		return sha256Size
	}
	return unknownSize
}

// count returns how often the word of small letters stands in the text, in any case and any place.
//
//go:norace
func (t *text) count(word string) uint {
	n := uint(0)
	for i := uint(0); i < t.n; i++ {
		if t.is(i, i+uint(len(word)), word) {
			n++
		}
	}
	return n
}
