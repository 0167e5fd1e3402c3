package files

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"headgate/internal/exchange"
)

// nameOf returns the name below the root of the rest of a path: decoded once, without a
// slash at either end, "." for the root. slash reports whether the path ends with a slash.
// ok is false for a path that names no file that may be served: one with empty or dot
// segments, with encoded slashes, with characters that are not part of names, or with a
// hidden segment. The path is in its normal form, so that an invalid encoding cannot occur;
// one is rejected nevertheless.
func nameOf(text *exchange.Text, rest string) (name string, slash, ok bool) {
	if rest == "" {
		return ".", false, true
	}
	if rest[0] != '/' {
		return "", false, false
	}
	if rest == "/" {
		return ".", true, true
	}
	b, ok := appendDecoded(text.Buffer(), rest[1:])
	if !ok {
		return "", false, false
	}
	if slash = b[len(b)-1] == '/'; slash {
		b = b[:len(b)-1]
	}
	for i, left := 0, b; ; i++ {
		segment, others, more := bytes.Cut(left, []byte{'/'})
		if !visible(segment) && (i > 0 || string(segment) != wellKnown) || !native(segment) {
			return "", false, false
		}
		if left = others; !more {
			return text.End(b), slash, true
		}
	}
}

// wellKnown is the only name with a dot at its beginning that is served, at the root (RFC
// 8615).
const wellKnown = ".well-known"

// appendDecoded decodes percent-encoding once. It reports false for what no name contains
// on any system: encoded slashes, backslashes, NUL and other control characters.
func appendDecoded(b []byte, s string) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return nil, false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi > 15 || lo > 15 {
				return nil, false
			}
			if c = hi<<4 | lo; c == '/' {
				return nil, false
			}
			i += 2
		}
		if c < ' ' || c == 0x7f || c == '\\' {
			return nil, false
		}
		b = append(b, c)
	}
	return b, true
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// visible reports whether a segment is a name, and not hidden.
func visible(segment []byte) bool { return len(segment) > 0 && segment[0] != '.' }

// native reports whether a name means the file of this very name on this system.
func native(segment []byte) bool {
	switch runtime.GOOS {
	case "windows":
		return windowsName(segment)
	case "darwin", "ios":
		return darwinName(segment)
	}
	return true
}

// windowsName reports whether Windows reads a name as it is written. Dots and blanks at the
// end are ignored there, a colon separates an alternate data stream, a tilde with a digit
// may be the short name of another file, some names are devices in every folder, and the
// others are wildcards.
func windowsName(segment []byte) bool {
	if len(segment) == 0 {
		return true
	}
	if last := segment[len(segment)-1]; last == '.' || last == ' ' {
		return false
	}
	for i, c := range segment {
		switch c {
		case ':', '*', '?', '"', '<', '>', '|':
			return false
		case '~':
			if i+1 < len(segment) && segment[i+1]-'0' < 10 {
				return false
			}
		}
	}
	base, _, _ := strings.Cut(string(segment), ".")
	return !slices.Contains(devices, strings.ToUpper(strings.TrimRight(base, " ")))
}

// devices are names that mean a device on Windows, with any extension.
var devices = []string{
	"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$",
	"COM0", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9", "COM¹", "COM²", "COM³",
	"LPT0", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9", "LPT¹", "LPT²", "LPT³",
}

// darwinName reports whether macOS reads a name as it is written: HFS+ ignores some
// characters, so that a name with one of them in front of a dot is a hidden file.
func darwinName(segment []byte) bool {
	if !utf8.Valid(segment) {
		return false
	}
	for _, r := range string(segment) {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return false
		}
	}
	return true
}
