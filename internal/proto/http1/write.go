package http1

import (
	"net/http"
	"strconv"

	"headgate/internal/proto/header"
)

// What ends lines, heads and bodies.
const (
	// CRLF ends a line, and a head when it follows the last field.
	CRLF = "\r\n"
	// LastChunk ends a chunked body that has no trailers.
	LastChunk = "0\r\n\r\n"
)

// The functions below check nothing: code that makes a target, a name or a
// value from settings or variables calls ValidName and ValidValue first.

// AppendRequestLine appends the first line of an HTTP/1.1 request.
func AppendRequestLine(dst []byte, method, target string) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, target...)
	return append(dst, " HTTP/1.1\r\n"...)
}

// AppendStatusLine appends the first line of an HTTP/1.1 response, with the
// registered reason phrase if reason is "".
func AppendStatusLine(dst []byte, status int, reason string) []byte {
	if uint(status) < uint(len(statusLines)) {
		if line := &statusLines[status]; line.text != "" && (reason == "" || reason == line.reason()) {
			return append(dst, line.text...)
		}
	}
	dst = append(dst, statusVersion...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason...)
	return append(dst, CRLF...)
}

const statusVersion = "HTTP/1.1 "

// statusLine is a whole status line with the registered reason phrase.
type statusLine struct{ text string }

func (l *statusLine) reason() string {
	return l.text[len(statusVersion)+len("200 ") : len(l.text)-len(CRLF)]
}

var statusLines = makeStatusLines()

func makeStatusLines() (t [600]statusLine) {
	for status := range t {
		if reason := http.StatusText(status); reason != "" {
			t[status].text = statusVersion + strconv.Itoa(status) + " " + reason + CRLF
		}
	}
	return t
}

// AppendField appends a field line.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, CRLF...)
}

// AppendFields appends the field lines of a list, without the empty line.
func AppendFields(dst []byte, list *header.List) []byte {
	all := list.All()
	for i := range all {
		dst = AppendField(dst, all[i].Name, all[i].Value)
	}
	return dst
}

// AppendContentLength appends a Content-Length field line.
func AppendContentLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, CRLF...)
}

// AppendChunkHeader appends the line before n bytes of chunk data. n is more
// than 0, as 0 would end the body. CRLF follows the data.
func AppendChunkHeader(dst []byte, n int64) []byte {
	dst = strconv.AppendUint(dst, uint64(n), 16)
	return append(dst, CRLF...)
}

// AppendChunk appends data as one chunk, and nothing if it is empty.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = AppendChunkHeader(dst, int64(len(data)))
	dst = append(dst, data...)
	return append(dst, CRLF...)
}

// AppendTrailers ends a chunked body with the trailer fields of a list, which
// may be empty.
func AppendTrailers(dst []byte, list *header.List) []byte {
	dst = append(dst, "0\r\n"...)
	dst = AppendFields(dst, list)
	return append(dst, CRLF...)
}
