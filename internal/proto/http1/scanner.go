package http1

import "bytes"

// Scanner looks for the end of a head that arrives in pieces. It remembers how
// far it has looked, so a head that comes byte by byte costs no more than one
// that comes at once. The zero value is ready, and is set to zero again for the
// next head.
//
// A head is first passed to ParseRequest or ParseResponse, as most arrive
// whole. If that needs more bytes, call Ready after each read, and the parser
// again when Ready reports true.
type Scanner struct {
	done  int  // bytes looked at; all lines in them end in CRLF
	start int  // the start of the line that contains done
	lines bool // a line that is not empty has been seen
}

// Ready reports whether the parser would return a result for buf: the head is complete,
// exceeds a limit, or contains an invalid line end, so that more data is not needed. buf
// must start at the same byte as in the previous call.
func (s *Scanner) Ready(buf []byte, lim *Limits) bool {
	if len(buf) >= lim.headSize() {
		return true
	}
	for {
		i := bytes.IndexByte(buf[s.done:], '\n')
		end := len(buf)
		if i >= 0 {
			end = s.done + i
		}
		if bareCR(buf, s.done, end) {
			return true
		}
		if i < 0 {
			s.done = keepCR(buf, s.done)
			return false
		}
		empty := end == s.start+1
		if end == s.start || buf[end-1] != '\r' || empty && (s.lines || s.start > 0) {
			return true
		}
		s.lines = s.lines || !empty
		s.done, s.start = end+1, end+1
	}
}

// bareCR reports whether buf[from:end], except its last byte, contains a CR.
func bareCR(buf []byte, from, end int) bool {
	return end > from && bytes.IndexByte(buf[from:end-1], '\r') >= 0
}

// keepCR returns where to look on: at a CR whose next byte has not arrived.
func keepCR(buf []byte, from int) int {
	if n := len(buf); n > from && buf[n-1] == '\r' {
		return n - 1
	}
	return len(buf)
}
