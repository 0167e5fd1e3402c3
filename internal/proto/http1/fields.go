package http1

import "headgate/internal/proto/header"

// slot numbers the fields that decide how a message is read.
type slot uint8

const (
	slotNone slot = iota
	slotHost
	slotLength
	slotCoding
	slotConnection
	slotUpgrade
	slotExpect
	slotCount
)

// slots maps well-known names to their slots.
var slots = [256]slot{
	header.Host: slotHost, header.ContentLength: slotLength, header.TransferEncoding: slotCoding,
	header.Connection: slotConnection, header.Upgrade: slotUpgrade, header.Expect: slotExpect,
}

// facts collects the fields that decide how a message is read while its fields
// are parsed, so that the list is not searched for them again.
type facts struct {
	value  [slotCount]string // of the last field of each slot
	count  [slotCount]int32
	traits uint8 // classes of bytes seen in unknown names
}

// parseFields parses field lines from pos up to and with the empty line that
// ends them. It returns the position behind that line.
func parseFields(b []byte, pos, limit int, list *header.List, f *facts) (int, Error) {
	for n := 0; ; n++ {
		start := pos
		pos = nameEnd(b, pos)
		if pos == len(b) {
			return pos, partialName(b, start)
		}
		if pos == start || b[pos] != ':' {
			return endOfFields(b, start, pos)
		}
		if n == limit {
			return pos, TooManyFields
		}
		name := view(b, start, pos)
		id := header.Lookup(name)
		if id == header.Other {
			if e := f.judgeName(name); e != none {
				return pos, e
			}
		}
		pos++
		for pos < len(b) && (b[pos] == ' ' || b[pos] == '\t') {
			pos++
		}
		start = pos
		pos = valueEnd(b, pos)
		if pos+1 >= len(b) {
			return pos, partialLine(b, pos, ControlInValue)
		}
		if b[pos] != '\r' || b[pos+1] != '\n' {
			return pos, badLineEnd(b, pos, ControlInValue)
		}
		end := pos
		for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
			end--
		}
		value := view(b, start, end)
		pos += 2
		list.AddKnown(id, name, value)
		if s := slots[id]; s != slotNone {
			f.value[s] = value
			f.count[s]++
		}
	}
}

// endOfFields judges a line that has no name and colon: b[at] is its first byte
// that is neither.
func endOfFields(b []byte, start, at int) (int, Error) {
	switch c := b[at]; {
	case c == '\r' && at == start && at+1 == len(b):
		return at, more
	case c == '\r' && at == start && b[at+1] == '\n':
		return at + 2, none
	case c == '\r' || c == '\n':
		return at, badLineEnd(b, at, NoColon)
	case at > start && (c == ' ' || c == '\t'):
		return at, spaceInName(b, at)
	case c == ' ' || c == '\t':
		return at, ObsFold
	case c == ':':
		return at, EmptyName
	}
	return at, BadName
}

// spaceInName distinguishes white space before the colon from white space
// elsewhere.
func spaceInName(b []byte, at int) Error {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
		at++
	}
	if at < len(b) && b[at] != ':' {
		return BadName
	}
	return SpaceBeforeColon
}

// judgeName rejects an unknown name that is not a token, and one that a server
// which turns names into variables confuses with a framing field:
// "Content_Length", "transfer.encoding".
func (f *facts) judgeName(name string) Error {
	var all, odds uint8 = tchar, 0
	for i := 0; i < len(name); i++ {
		c := class[name[i]]
		all &= c
		odds |= c
	}
	if all == 0 {
		return BadName
	}
	if odds&odd != 0 {
		f.traits |= odds
		switch header.Twin(name) {
		case header.ContentLength, header.TransferEncoding:
			return LookalikeName
		}
	}
	return none
}

// partialName judges the beginning of a line that has not arrived whole.
func partialName(b []byte, start int) Error {
	for _, c := range b[start:] {
		if class[c]&tchar == 0 {
			return BadName
		}
	}
	return more
}

// partialLine judges a line of which at most one byte of its end has arrived.
func partialLine(b []byte, pos int, otherwise Error) Error {
	if pos == len(b) || b[pos] == '\r' {
		return more
	}
	return badLineEnd(b, pos, otherwise)
}

// badLineEnd returns what is wrong with b[pos], which is not the expected
// byte; otherwise is the error if it is not a bare CR or LF.
func badLineEnd(b []byte, pos int, otherwise Error) Error {
	switch {
	case b[pos] == '\n':
		return BareLF
	case b[pos] == '\r' && (pos+1 == len(b) || b[pos+1] != '\n'):
		return BareCR
	}
	return otherwise
}
