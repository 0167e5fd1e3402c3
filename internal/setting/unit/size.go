package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as in "10MiB", "64KiB", "1GB" or plain
// "4096". KiB, MiB, GiB and TiB are powers of 1024; kB, MB, GB and TB are
// powers of 1000. A Size is never negative; what zero means is said by the
// setting.
type Size int64

// The binary units.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// sizeUnit returns the number of bytes of a unit. Letter case does not
// matter: "10mib" and "10MiB" are one size.
func sizeUnit(name string) (Size, bool) {
	switch strings.ToLower(name) {
	case "", "b":
		return 1, true
	case "kib":
		return KiB, true
	case "mib":
		return MiB, true
	case "gib":
		return GiB, true
	case "tib":
		return TiB, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "tb":
		return 1e12, true
	}
	return 0, false
}

// Off reports whether s is zero, which switches most settings off.
func (s Size) Off() bool { return s == 0 }

// Int64 returns s as a number of bytes.
func (s Size) Int64() int64 { return int64(s) }

// String returns s in the largest binary unit that holds it without a
// fraction. ParseSize reads it back to the same value.
func (s Size) String() string {
	if s != 0 {
		for _, u := range [...]struct {
			size Size
			name string
		}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
			if s%u.size == 0 {
				return strconv.FormatInt(int64(s/u.size), 10) + u.name
			}
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// ParseSize reads a size: a number, with a fraction when a unit follows, and a
// unit. Blanks between them are allowed. A size that is negative, has a
// fraction of a byte or does not fit into 63 bits is an error.
func ParseSize(text string) (Size, error) {
	t := strings.TrimSpace(text)
	if t == "" {
		return 0, errors.New(`empty size, expected a form like "10MiB"`)
	}
	if t[0] == '-' {
		return 0, fmt.Errorf("size %q is negative", text)
	}
	end := strings.IndexFunc(t, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(t)
	}
	name := strings.TrimSpace(t[end:])
	factor, ok := sizeUnit(name)
	if !ok {
		return 0, fmt.Errorf("%q is not a size: unknown unit %q, expected B, KiB, MiB, GiB, TiB, kB, MB, GB or TB", text, name)
	}
	if n, err := strconv.ParseInt(t[:end], 10, 64); err == nil {
		if n > math.MaxInt64/int64(factor) {
			return 0, fmt.Errorf("size %q is too large", text)
		}
		return Size(n) * factor, nil
	}
	f, err := strconv.ParseFloat(t[:end], 64)
	if err != nil || strings.HasPrefix(t, ".") || strings.HasSuffix(t[:end], ".") {
		return 0, fmt.Errorf("%q is not a size, expected a form like %q", text, "10MiB")
	}
	f *= float64(factor)
	if f >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	if f != math.Trunc(f) {
		return 0, fmt.Errorf("size %q is not a whole number of bytes", text)
	}
	return Size(f), nil
}

// MarshalText writes s in its shortest exact form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}
