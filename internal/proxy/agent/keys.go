package agent

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A Fingerprint names an ssh key as ssh-keygen -l prints it: SHA256 and the hash
// of its public half in base64, without padding.
type Fingerprint string

// ParseFingerprint reads SHA256:..., or a line of an id_x.pub file. A user's
// certificate is another key than the one it is for.
func ParseFingerprint(s string) (Fingerprint, error) {
	if sum, ok := strings.CutPrefix(s, "SHA256:"); ok {
		if b, err := base64.RawStdEncoding.Strict().DecodeString(sum); err != nil || len(b) != sha256.Size {
			return "", fmt.Errorf("%.60q is no fingerprint", s)
		}
		return Fingerprint(s), nil
	}
	if words := strings.Fields(s); len(words) >= 2 {
		blob, err := base64.StdEncoding.Strict().DecodeString(words[1])
		if name, _, ok := cutString(blob); err == nil && ok && string(name) == words[0] {
			return fingerprint(blob), nil
		}
	}
	return "", fmt.Errorf("%.60q is neither SHA256:... nor the line of a public key", s)
}

func fingerprint(blob []byte) Fingerprint {
	sum := sha256.Sum256(blob)
	return Fingerprint("SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]))
}

// has says whether a key may sign. An empty list that is not nil grants none.
func (o SSHOptions) has(blob []byte) bool {
	return o.Keys == nil || slices.Contains(o.Keys, fingerprint(blob))
}

// granted leaves of an IDENTITIES_ANSWER (uint32 count, then string key and string
// comment for each) the keys that are granted.
func (o SSHOptions) granted(answer []byte) ([]byte, error) {
	if len(answer) < 5 {
		return nil, fmt.Errorf("%w: a short list of identities", ErrProtocol)
	}
	count, rest := binary.BigEndian.Uint32(answer[1:]), answer[5:]
	kept, n := slices.Clone(answer[:5]), uint32(0)
	for range count {
		key, after, ok := cutString(rest)
		if ok {
			_, after, ok = cutString(after)
		}
		if !ok {
			return nil, fmt.Errorf("%w: a broken list of identities", ErrProtocol)
		}
		if o.has(key) {
			kept, n = append(kept, rest[:len(rest)-len(after)]...), n+1
		}
		rest = after
	}
	binary.BigEndian.PutUint32(kept[1:], n)
	return kept, nil
}
