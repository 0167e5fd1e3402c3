package importer

import (
	"strconv"
	"strings"
)

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
