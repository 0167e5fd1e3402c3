package fcgi

import (
	"bytes"
	"errors"

	"headgate/internal/proto/header"
)

// HeadEnd returns the size of the head at the beginning of a script's output, with its empty
// line, and 0 if the end has not arrived. from is how many bytes were searched before.
func HeadEnd(b []byte, from int) int {
	for i := max(from-2, 0); ; {
		at := bytes.IndexByte(b[i:], '\n')
		if at < 0 {
			return 0
		}
		i += at + 1
		switch line := i - 1; {
		case line == 0, line == 1 && b[0] == '\r': // a script without fields
			return i
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
	}
}

// MaxGrowth is how much longer a line is at most in what AppendResponseHead appends, in bytes.
const MaxGrowth = 1

var errStatus = errors.New("the script's Status is not a status code from 200 to 599")

// AppendResponseHead appends the head that a script wrote as one of HTTP/1.1, which still has
// to be parsed: its fields are not checked here. The status is that of Status, or else 302
// with a Location and 200 without one (RFC 3875, section 6.3). A Location without a host is
// sent to the client like others, and not resolved here. Fields that would frame the message
// are left out, because FastCGI does that.
func AppendResponseHead(dst, head []byte) ([]byte, error) {
	status, located := []byte(nil), false
	for line := range lines(head) {
		switch name, value := field(line); {
		case header.EqualFold(name, "Status"):
			code, ok := statusOf(value)
			if !ok || status != nil {
				return dst, errStatus
			}
			status = code
		case header.EqualFold(name, "Location"):
			located = true
		}
	}
	switch {
	case status != nil:
	case located:
		status = []byte("302")
	default:
		status = []byte("200")
	}
	dst = append(append(append(dst, "HTTP/1.1 "...), status...), " \r\n"...)
	for line := range lines(head) {
		name, _ := field(line)
		if id := header.Lookup(name); id.HopByHop() || header.EqualFold(name, "Status") {
			continue
		}
		dst = append(append(dst, line...), "\r\n"...)
	}
	return append(dst, "\r\n"...), nil
}

// lines returns the lines of a head up to the empty one, without their ends.
func lines(head []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(head) > 0 {
			line, rest, _ := bytes.Cut(head, []byte{'\n'})
			line = bytes.TrimSuffix(line, []byte{'\r'})
			if len(line) == 0 || !yield(line) {
				return
			}
			head = rest
		}
	}
}

// field returns the name of a line, "" if it has none, and its value.
func field(line []byte) (name string, value []byte) {
	before, after, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return "", nil
	}
	return string(before), bytes.Trim(after, " \t")
}

// statusOf returns the code of a Status, which a reason may follow.
func statusOf(value []byte) ([]byte, bool) {
	code, _, _ := bytes.Cut(value, []byte{' '})
	if len(code) != 3 || code[0] < '2' || code[0] > '5' || code[1]-'0' > 9 || code[2]-'0' > 9 {
		return nil, false
	}
	return code, true
}
