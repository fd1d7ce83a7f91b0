package redact

// An automaton finds any of the writings of all secrets in a text, with an amortized constant of steps a byte: Aho and
// Corasick, "Efficient string matching" (1975). It is immutable, and shared by all streams.
type automaton struct {
	nodes   []node
	root    [256]int32 // children of the root, which is node 0
	hits    []found
	longest int // bytes of the longest writing
}

// A node stands for the beginning of a writing.
type node struct {
	child, sibling int32 // the first child; the next child of the parent
	fail           int32 // the longest end of this beginning that is a beginning too
	hit            int32 // in hits: the longest writing that ends here, and 1
	depth          int32
	shortest       int32 // writing that begins so
	half           int32 // bytes of the longest end that is more than half of a writing
	b              byte
}

// found is a writing: its bytes, and of which secret.
type found struct {
	bytes  int32
	secret int32
}

// add adds a writing of a secret. link has to follow.
func (a *automaton) add(writing string, secret int) {
	n := int32(0)
	for i := range len(writing) {
		b := folded[writing[i]]
		to := a.childOf(n, b)
		if to == 0 {
			to = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{b: b, depth: int32(i + 1), sibling: a.nodes[n].child, shortest: int32(len(writing))})
			if a.nodes[n].child = to; n == 0 {
				a.root[b] = to
			}
		}
		a.nodes[to].shortest = min(a.nodes[to].shortest, int32(len(writing)))
		n = to
	}
	if a.nodes[n].hit == 0 {
		a.hits = append(a.hits, found{int32(len(writing)), int32(secret)})
		a.nodes[n].hit = int32(len(a.hits))
	}
	a.longest = max(a.longest, len(writing))
}

func (a *automaton) childOf(n int32, b byte) int32 {
	if n == 0 {
		return a.root[b]
	}
	c := a.nodes[n].child
	for c != 0 && a.nodes[c].b != b {
		c = a.nodes[c].sibling
	}
	return c
}

// link finds where each node fails to, a depth after the other.
func (a *automaton) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for c := a.nodes[n].child; c != 0; c = a.nodes[c].sibling {
			p := &a.nodes[c]
			if n != 0 {
				p.fail = a.step(a.nodes[n].fail, p.b)
			}
			to := &a.nodes[p.fail]
			if p.hit == 0 {
				p.hit = to.hit
			}
			if p.half = to.half; 2*p.depth > p.shortest {
				p.half = p.depth
			}
			queue = append(queue, c)
		}
	}
}

// step returns the node after one more folded byte.
func (a *automaton) step(n int32, b byte) int32 {
	for n != 0 {
		if c := a.childOf(n, b); c != 0 {
			return c
		}
		n = a.nodes[n].fail
	}
	return a.root[b]
}

// folded is a byte as texts are compared: servers write hexadecimal digits and the names of headers in either case, and a
// secret in another case still tells most of it. Either alphabet of base64 is one, and so are the two spaces of URLs.
var folded = func() (to [256]byte) {
	for i := range to {
		to[i] = byte(i)
	}
	for c := 'A'; c <= 'Z'; c++ {
		to[c] |= 0x20
	}
	to['-'], to['_'], to[' '] = '+', '/', '+'
	return to
}()
