package rlimit

import (
	"encoding/json"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// scale is a way to write a number: a suffix and what it multiplies by. A unit's scales go from large to small.
type scale struct {
	suffix string
	factor uint64
}

var scales = [...][]scale{
	inCount:        {{"", 1}},
	inBytes:        {{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}},
	inSeconds:      {{"h", 3600}, {"m", 60}, {"s", 1}},
	inMicroseconds: {{"s", 1_000_000}, {"ms", 1000}, {"us", 1}},
}

// format prints n with the largest suffix that divides it.
func (u unit) format(n uint64) string {
	switch n {
	case Unlimited:
		return "unlimited"
	case Inherited:
		return "inherited"
	case 0:
		return "0"
	}
	for _, s := range scales[u] {
		if n%s.factor == 0 {
			return strconv.FormatUint(n/s.factor, 10) + s.suffix
		}
	}
	panic("rlimit: a unit without a scale of 1")
}

var (
	errNumber = errors.New("not a whole number with a unit of the resource, unlimited or inherited")
	errLarge  = errors.New("too large for a limit; write unlimited")
)

// parse reads what format prints. Only 0 may lack its unit where the unit has one.
func (u unit) parse(text string) (uint64, error) {
	switch text {
	case "unlimited":
		return Unlimited, nil
	case "inherited":
		return Inherited, nil
	case "0":
		return 0, nil
	}
	end := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(text)
	}
	i := slices.IndexFunc(scales[u], func(s scale) bool { return s.suffix == text[end:] })
	if i < 0 || end == 0 {
		return 0, errNumber
	}
	n, err := strconv.ParseUint(text[:end], 10, 64)
	if err != nil {
		return 0, errLarge
	}
	high, low := bits.Mul64(n, scales[u][i].factor)
	if high != 0 || low >= Inherited {
		return 0, errLarge
	}
	return low, nil
}

// Parse reads what [Resource.Format] prints, "soft:hard" or one value for both: whole numbers
// with a suffix of r's unit (B, KiB, MiB, GiB, TiB for bytes, and none is bytes; s, m, h for
// CPU; us, ms, s for RTTime; none for counts), unlimited, or inherited. The error is a
// [*FieldError]. It does not judge the numbers; [Limits.Validate] does.
func (r Resource) Parse(text string) (Limit, error) {
	u := resources[r].unit
	soft, hard, both := strings.Cut(text, ":")
	if !both {
		hard = soft
	}
	var l Limit
	var err error
	if l.Soft, err = u.parse(soft); err == nil {
		l.Hard, err = u.parse(hard)
	}
	if err != nil {
		return Limit{}, &FieldError{resources[r].field, text, err.Error()}
	}
	return l, nil
}

// MarshalJSON writes the fields that are not nil.
func (l Limits) MarshalJSON() ([]byte, error) {
	m := map[string]string{}
	for r := range Resource(NumResources) {
		if limit := *l.of(r); limit != nil {
			m[r.String()] = r.Format(*limit)
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes and validates it, replacing all of l. An unknown
// name, or a value that is not a string, is an error: a [*FieldError] or encoding/json's own.
// On an error l is unchanged.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var m map[string]string
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	var out Limits
	for r := range Resource(NumResources) {
		text, ok := m[r.String()]
		if !ok {
			continue
		}
		limit, err := r.Parse(text)
		if err != nil {
			return err
		}
		*out.of(r) = &limit
		delete(m, r.String())
	}
	for key, text := range m {
		return &FieldError{key, text, "no such resource"}
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*l = out
	return nil
}
