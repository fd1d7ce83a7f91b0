package supervisor

// blobSum computes the name that git gives a file's content, by SHA-1 or SHA-256 (FIPS 180-4). It is code for the forked child: see the
// rules above Serve. Package crypto is not for it.
type blobSum struct {
	h     [8]uint32
	w     [80]uint32
	block [64]byte
	n     uint // bytes added
	short bool // SHA-1
}

var sum256 = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// begin starts with what git puts before the size bytes of a file. id is the length of an object's name.
//
//go:norace
func (s *blobSum) begin(id, size uint) {
	s.n, s.short = 0, id == 20
	s.h = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	if s.short {
		s.h = [8]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}
	}
	const head = "blob "
	for i := 0; i < len(head); i++ {
		s.add(head[i])
	}
	var digits [32]byte
	n := uint(0)
	for first := true; first || size > 0; first = false {
		digits[n&31] = byte('0' + size%10)
		n, size = n+1, size/10
	}
	for ; n > 0; n-- {
		s.add(digits[(n-1)&31])
	}
	s.add(0)
}

//go:norace
func (s *blobSum) add(c byte) {
	s.block[s.n&63] = c
	if s.n++; s.n&63 == 0 {
		if s.short {
			s.round1()
		} else {
			s.round256()
		}
	}
}

// end reports whether the sum of what was added is id.
//
//go:norace
func (s *blobSum) end(id *[32]byte) bool {
	bits := uint64(s.n) << 3
	for s.add(0x80); s.n&63 != 56; {
		s.add(0)
	}
	for i := 56; i >= 0; i -= 8 {
		s.add(byte(bits >> uint(i)))
	}
	words, same := 8, true
	if s.short {
		words = 5
	}
	for i := 0; i < words; i++ {
		for j := 0; j < 4; j++ {
			same = same && byte(s.h[i&7]>>uint(24-8*j)) == id[(4*i+j)&31]
		}
	}
	return same
}

//go:norace
func turn(v uint32, n uint) uint32 { return v<<n | v>>(32-n) }

// words makes the first 16 words of the block.
//
//go:norace
func (s *blobSum) words() {
	for i := uint(0); i < 64; i += 4 {
		s.w[i>>2] = uint32(s.block[i&63])<<24 | uint32(s.block[(i+1)&63])<<16 | uint32(s.block[(i+2)&63])<<8 | uint32(s.block[(i+3)&63])
	}
}

//go:norace
func (s *blobSum) round1() {
	s.words()
	a, b, c, d, e := s.h[0], s.h[1], s.h[2], s.h[3], s.h[4]
	for i := uint(0); i < 80; i++ {
		if i >= 16 {
			s.w[i] = turn(s.w[i-3]^s.w[i-8]^s.w[i-14]^s.w[i-16], 1)
		}
		f, k := b^c^d, uint32(0xca62c1d6)
		switch {
		case i < 20:
			f, k = b&c|^b&d, 0x5a827999
		case i < 40:
			k = 0x6ed9eba1
		case i < 60:
			f, k = b&c|b&d|c&d, 0x8f1bbcdc
		}
		a, b, c, d, e = turn(a, 5)+f+e+k+s.w[i], a, turn(b, 30), c, d
	}
	s.h[0], s.h[1], s.h[2], s.h[3], s.h[4] = s.h[0]+a, s.h[1]+b, s.h[2]+c, s.h[3]+d, s.h[4]+e
}

//go:norace
func (s *blobSum) round256() {
	s.words()
	a, b, c, d, e, f, g, h := s.h[0], s.h[1], s.h[2], s.h[3], s.h[4], s.h[5], s.h[6], s.h[7]
	for i := uint(0); i < 64; i++ {
		if i >= 16 {
			v, u := s.w[i-15], s.w[i-2]
			s.w[i] = s.w[i-16] + s.w[i-7] + (turn(v, 25) ^ turn(v, 14) ^ v>>3) + (turn(u, 15) ^ turn(u, 13) ^ u>>10)
		}
		t := h + (turn(e, 26) ^ turn(e, 21) ^ turn(e, 7)) + (e&f ^ ^e&g) + sum256[i] + s.w[i]
		u := (turn(a, 30) ^ turn(a, 19) ^ turn(a, 10)) + (a&b ^ a&c ^ b&c)
		a, b, c, d, e, f, g, h = t+u, a, b, c, d+t, e, f, g
	}
	s.h[0], s.h[1], s.h[2], s.h[3] = s.h[0]+a, s.h[1]+b, s.h[2]+c, s.h[3]+d
	s.h[4], s.h[5], s.h[6], s.h[7] = s.h[4]+e, s.h[5]+f, s.h[6]+g, s.h[7]+h
}
