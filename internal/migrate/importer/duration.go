package importer

import (
	"strconv"
	"strings"
	"time"
)

// ShortDuration writes a time without units that are zero.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Duration returns a time with one unit, of ms, s, m, h or d, as headgate writes it. bare
// is the unit of a number without one. It is not ok if it cannot be read.
func Duration(text, bare string) (string, bool) {
	unit := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseUint(strings.TrimSuffix(text, unit), 10, 31)
	if err != nil {
		return "", false
	}
	switch unit {
	case "":
		return strconv.FormatUint(n, 10) + bare, true
	case "ms", "s", "m", "h":
		return strconv.FormatUint(n, 10) + unit, true
	case "d":
		return strconv.FormatUint(n*24, 10) + "h", true
	}
	return "", false
}
