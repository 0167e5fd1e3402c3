package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in nanoseconds, written as in "30s", "1m30s",
// "250ms", "24h" or "7d". A setting of this type is never negative; what zero
// means is said by the setting.
type Duration int64

// The units a Duration is written in, largest first. A day is 24 hours.
const day = 24 * time.Hour

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// Off reports whether d is zero, which switches most settings off.
func (d Duration) Off() bool { return d == 0 }

// String returns the shortest usual form: "1m", not "1m0s". ParseDuration
// reads it back to the same value.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ParseDuration reads a duration: one or more numbers with a unit each (ns, us,
// ms, s, m, h, d), largest unit first by custom, or a bare 0. A number without
// a unit and a negative duration are errors.
func ParseDuration(s string) (Duration, error) {
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return 0, errors.New(`empty duration, expected a form like "30s"`)
	case text == "0":
		return 0, nil
	case strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("duration %q is negative", s)
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("duration %q has no unit, expected a form like %q", s, text+"s")
	}
	days, rest, err := cutDays(text)
	if err != nil {
		return 0, err
	}
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.HasPrefix(rest, "+") {
		return 0, fmt.Errorf("%q is not a duration, expected a form like %q (ns, us, ms, s, m, h, d)", s, "30s")
	}
	if int64(d) > math.MaxInt64-int64(days) {
		return 0, fmt.Errorf("duration %q is too long", s)
	}
	return days + Duration(d), nil
}

// cutDays splits a leading count of whole days off s.
func cutDays(s string) (days Duration, rest string, err error) {
	number, rest, found := strings.Cut(s, "d")
	if !found {
		return 0, s, nil
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, "", fmt.Errorf("%q is not a duration, expected whole days like %q", s, "7d")
	}
	if n > uint64(math.MaxInt64/int64(day)) {
		return 0, "", fmt.Errorf("duration %q is too long", s)
	}
	return Duration(n) * Duration(day), rest, nil
}

// MarshalText writes d in its shortest form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
