package unit

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent is a whole number of hundredths, written as in "10%" or plain "10". A Percent
// is never negative; what zero means is said by the setting.
type Percent int64

// Of returns p hundredths of n.
func (p Percent) Of(n int64) int64 { return n * int64(p) / 100 }

// String returns p as in "10%", and "0" for zero.
func (p Percent) String() string {
	if p == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(p), 10) + "%"
}

// ParsePercent reads a whole number, with or without the sign.
func ParsePercent(text string) (Percent, error) {
	digits := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a percentage, expected a form like %q", text, "10%")
	}
	return Percent(n), nil
}

// MarshalText writes what String returns.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePercent reads.
func (p *Percent) UnmarshalText(text []byte) error {
	v, err := ParsePercent(string(text))
	if err != nil {
		return err
	}
	*p = v
	return nil
}
