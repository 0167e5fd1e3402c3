package uri

import "bytes"

// A path has one form here, but servers read some paths in more ways than one. This
// file produces the other ways: percent-encoding decoded, also twice; "\" as a slash;
// the part of a segment from ";" on removed, and dots and blanks at its end; dot
// segments resolved after that; empty segments removed; upper-case letters in lower
// case. A rule that protects a path checks whether another path could be read as it.

// Spelling classifies a path by how differently servers may read it.
type Spelling uint8

// The spellings of a path that is in its one form.
const (
	// Plain paths are read in one way.
	Plain Spelling = iota
	// Spelled paths have capitals or encoded characters: all read the same segments,
	// and may write them in another way.
	Spelled
	// Loose paths may be read as ones of other segments.
	Loose
)

// SpellingOf returns how a path is spelled. It looks at eight bytes at a time, most of
// which need no second look.
func SpellingOf(path string) (s Spelling) {
	for i := 0; i < len(path); {
		if len(path)-i >= 8 && plain(path[i:i+8]) {
			i += 8
			continue
		}
		for end := min(i+8, len(path)); i < end; i++ {
			switch loose[path[i]] {
			case 0:
			case looseCapital:
				s = Spelled
			case looseCut:
				return Loose
			case looseEnd:
				if i+1 == len(path) || path[i+1] == '/' {
					return Loose
				}
			case looseEncoding:
				if decodesLoosely(path[i:]) {
					return Loose
				}
				s = Spelled
				i += 2
			}
		}
	}
	return s
}

// plain reports whether none of eight bytes lets a path be read in another way: all are
// looked at as one number. It may be false for bytes that are no ASCII.
func plain(s string) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	seven := w &^ high
	capital := (seven + (0x80-'A')*each) &^ (seven + (0x80-'Z'-1)*each)
	dot, cut, encoding := w^'.'*each, w^';'*each, w^'%'*each
	zero := (dot-each)&^dot | (cut-each)&^cut | (encoding-each)&^encoding
	return (capital|zero)&high == 0
}

// decodesLoosely reports whether the encoded character at the start of s may start or
// end a segment, or an encoding.
func decodesLoosely(s string) bool {
	switch c := unhex(s[1])<<4 | unhex(s[2]); c {
	case '/', '\\', ';', '%', '.':
		return true
	case ' ':
		return len(s) == 3 || loose[s[3]] > looseCapital || s[3] == '/'
	}
	return false
}

// Bytes that let a path be read in another way.
const (
	looseCapital = 1 + iota
	looseCut
	looseEnd
	looseEncoding
)

var loose = func() (t [256]uint8) {
	for c := byte('A'); c <= 'Z'; c++ {
		t[c] = looseCapital
	}
	t[';'], t['.'], t['%'] = looseCut, looseEnd, looseEncoding
	return t
}()

// AppendFirst appends the slash and the first segment of a path that is not Loose, in
// the form of Readings.
func AppendFirst(dst []byte, path string) []byte {
	dst = append(dst, '/')
	for i := 1; i < len(path) && path[i] != '/'; i++ {
		c := path[i]
		if c == '%' {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
		}
		dst = append(dst, lower(c))
	}
	return dst
}

// IsFirst reports whether AppendFirst would append first, without doing it.
func IsFirst(path, first string) bool {
	at := 1 // in first, whose slash is that of the path
	for i := 1; i < len(path) && path[i] != '/'; i++ {
		c := path[i]
		if c == '%' {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
		}
		if at == len(first) || lower(c) != first[at] {
			return false
		}
		at++
	}
	return at == len(first)
}

// The bounds of readings: how often a path is decoded, and how many bytes all readings
// of one path may have. A path of several hundred bytes can have every way to be read,
// one of 16 KiB a few.
const (
	maxDecoded = 3
	maxRead    = 64 << 10
)

// Readings are the ways in which one path may be read; Begin sets the path. One value
// can be used for many paths, one after the other, without allocation.
type Readings struct {
	text    []byte // the path, decoded so far
	out     []byte
	ways    way // that make a difference for text
	way     way // of the next reading
	decoded int
	read    int
	begun   bool
}

// way is what is done when a path is read.
type way uint8

const (
	separate way = 1 << iota // "\" is a slash
	cut                      // what follows ";" is no part of a segment
	trim                     // nor are dots and blanks at its end
	merge                    // an empty segment is none
	resolve                  // dot segments are removed
)

// Reset prepares the readings of a path that is in its one form.
func (r *Readings) Reset(path string) {
	*r = Readings{text: append(r.text[:0], path...), out: r.out}
}

// Next returns the next reading, decoded, in lower case and without a slash at its
// end, valid until the next call; or nil and false when there is none.
func (r *Readings) Next() ([]byte, bool) {
	switch {
	case !r.begun:
		r.begun = true
	case r.way > 0:
		r.way = (r.way - 1) & r.ways
		return r.make(), true
	case r.decoded == maxDecoded || !r.decode():
		return nil, false
	default:
		r.decoded++
	}
	r.ways = waysOf(r.text)
	r.way = r.ways
	return r.make(), true
}

// Excessive reports whether the path may be read in more ways than are worth the work.
// Who gets true has not seen all of them.
func (r *Readings) Excessive() bool { return r.read > maxRead }

// waysOf returns what may make a difference for a path.
func waysOf(text []byte) (w way) {
	before := byte(0)
	for i, c := range text {
		end := i+1 == len(text) || text[i+1] == '/' || text[i+1] == '\\' || text[i+1] == ';'
		switch c {
		case '\\':
			w |= separate
		case ';':
			w |= cut
		case '.', ' ':
			if end {
				w |= trim
			}
		}
		if before == '/' || before == '\\' {
			switch c {
			case '/', '\\', ';', ' ':
				w |= merge
			case '.':
				w |= resolve | merge
			}
		}
		before = c
	}
	return w
}

// make makes the reading of the next way.
func (r *Readings) make() []byte {
	r.read += len(r.text)
	out := r.out[:0]
	for i := 0; i < len(r.text); {
		i++ // a slash
		begin := i
		for i < len(r.text) && !r.slash(r.text[i]) {
			i++
		}
		s := r.segment(r.text[begin:i])
		switch {
		case len(s) == 0 && (r.way&merge != 0 || i == len(r.text)):
		case r.way&resolve != 0 && len(s) == 1 && s[0] == '.':
		case r.way&resolve != 0 && len(s) == 2 && s[0] == '.' && s[1] == '.':
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		default:
			out = append(out, '/')
			for _, c := range s {
				out = append(out, lower(c))
			}
		}
	}
	r.out = out
	return out
}

func (r *Readings) slash(c byte) bool { return c == '/' || c == '\\' && r.way&separate != 0 }

// segment returns what a segment is read as.
func (r *Readings) segment(s []byte) []byte {
	if r.way&cut != 0 {
		if i := bytes.IndexByte(s, ';'); i >= 0 {
			s = s[:i]
		}
	}
	if r.way&trim == 0 {
		return s
	}
	s = bytes.TrimRight(s, " ")
	if len(s) > 2 || len(s) > 0 && s[0] != '.' || len(s) == 2 && s[1] != '.' {
		s = bytes.TrimRight(s, ". ")
	}
	return s
}

// decode decodes the text once and reports whether that made a difference.
func (r *Readings) decode() bool {
	at := bytes.IndexByte(r.text, '%')
	if at < 0 {
		return false
	}
	out := r.text[:at]
	for i := at; i < len(r.text); i++ {
		c := r.text[i]
		if c == '%' && i+2 < len(r.text) {
			if hi, lo := unhex(r.text[i+1]), unhex(r.text[i+2]); hi|lo <= 15 {
				c = hi<<4 | lo
				i += 2
			}
		}
		out = append(out, c)
	}
	changed := len(out) < len(r.text)
	r.text = out
	return changed
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// AppendLoose appends a path in the form of Readings: decoded once, in lower case and
// without a slash at its end.
func AppendLoose(dst []byte, path string) []byte {
	r := Readings{text: []byte(path)}
	r.decode()
	return append(dst, r.make()...)
}
