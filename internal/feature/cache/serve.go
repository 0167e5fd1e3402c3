package cache

import (
	"io"
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/header"
	"headgate/internal/http1"
)

// hit is what a request needs of the cache, from its key to the last byte of the
// response: it is the response's body. An exchange has one, which is used again
// for the next request there.
type hit struct {
	store *store
	ex    *exchange.Exchange

	// what the request asks for
	key               []byte
	url               int // bytes of the key that are hashed
	hash              uint64
	cc                directives
	now               int64
	asked             codings
	codingsKnown      bool
	set, setValues    uint64
	scratch           []byte
	near              bool // there is another variant
	rounds            int
	use               use
	collapsed         bool
	partly            bool // a part is to be fetched
	forwarded, stored bool
	revalidated       bool
	forwardStatus     int
	spare             *entry         // held while waiting
	extra             []header.Field // for this client only

	// what it gets
	e       *entry
	body    *body
	reading bool
	lost    bool
	at, end int64 // end is -1 until it is known
	piece   int   // where at is, in a whole body
	begins  int64
}

// open takes over the caller's hold on an entry, and joins its body. It returns
// false, and has let go, if the body broke off meanwhile.
func (h *hit) open(e *entry) bool {
	if !e.body.join(h) {
		e.release()
		return false
	}
	h.attach(e)
	return true
}

// begin is open for an entry that was just made.
func (h *hit) begin(e *entry) {
	e.body.join(h)
	h.attach(e)
}

func (h *hit) attach(e *entry) {
	h.e, h.body, h.reading, h.lost = e, e.body, true, false
	h.at, h.end = 0, e.body.total()
	h.piece, h.begins = 0, 0
}

// Close lets go of what the response was made of. It may be called more than
// once.
func (h *hit) Close() error {
	e := h.e
	if e == nil {
		return nil
	}
	h.e = nil
	if !h.body.whole.Load() {
		h.body.leave(h)
	}
	h.body = nil
	e.release()
	return nil
}

// begin reads what is at hand of a body that has just begun. Most are whole then.
func (b *body) begin() {
	for {
		b.mu.Lock()
		if b.mu.pumping || b.endedLocked() || b.mu.passing || b.mu.size >= atOnce && b.mu.size != b.length {
			b.mu.Unlock()
			return
		}
		b.mu.pumping = true
		b.mu.Unlock()
		if !b.atEnd() && !b.mu.source.body().Ready() {
			b.mu.Lock()
			b.mu.pumping = false
			b.wakeLocked()
			b.mu.Unlock()
			return
		}
		b.pump()
	}
}

// atEnd reports whether all announced bytes are here, and only the end is not.
func (b *body) atEnd() bool { return b.length >= 0 && b.mu.size == b.length }

// Ready reports whether Read would not wait.
func (h *hit) Ready() bool {
	b := h.body
	return b == nil || b.whole.Load() || h.end >= 0 && h.at >= h.end || b.ready(h)
}

// Read reads on.
func (h *hit) Read(p []byte) (int, error) {
	b := h.body
	if b == nil || h.end >= 0 && h.at >= h.end {
		return 0, io.EOF
	}
	if h.end >= 0 {
		p = p[:min(int64(len(p)), h.end-h.at)]
	}
	if !b.whole.Load() {
		n, err := b.read(h, p)
		if err == nil && h.end >= 0 && h.at >= h.end && b.whole.Load() {
			err = io.EOF
		}
		return n, err
	}
	return h.readWhole(p)
}

// View returns the next bytes of a body that is here.
func (h *hit) View() ([]byte, error) {
	b := h.body
	switch {
	case b == nil:
		return nil, io.EOF
	case !b.whole.Load():
		return nil, nil
	}
	h.end = min(b.mu.size, h.end&(1<<63-1))
	if h.at >= h.end {
		return nil, io.EOF
	}
	mem := h.next()
	h.at += int64(len(mem))
	return mem, nil
}

// next returns what is left of the piece where at is.
func (h *hit) next() []byte {
	b := h.body
	if h.at < h.begins {
		h.piece, h.begins = 0, 0
	}
	for {
		mem := b.mu.pieces[h.piece].mem
		if h.at < h.begins+int64(len(mem)) {
			return mem[h.at-h.begins : min(int64(len(mem)), h.end-h.begins)]
		}
		h.piece, h.begins = h.piece+1, h.begins+int64(len(mem))
	}
}

// readWhole copies from a body that is here.
func (h *hit) readWhole(p []byte) (n int, err error) {
	h.end = min(h.body.mu.size, h.end&(1<<63-1))
	for n < len(p) && h.at < h.end {
		k := copy(p[n:], h.next())
		n, h.at = n+k, h.at+int64(k)
	}
	if h.at >= h.end {
		return n, io.EOF
	}
	return n, nil
}

// serve answers with an entry that is open.
func (h *hit) serve(e *entry) *exchange.Answer {
	h.serveWith(e, nil)
	return nil
}

// serveWith is serve with further fields.
func (h *hit) serveWith(e *entry, extra []header.Field) {
	rs := &h.ex.Response
	rs.Reset()
	rs.Status, rs.Body, rs.Length = e.status, h, h.end
	h.h304(e, rs)
	switch {
	case e.part.total > 0:
		h.cutPart(e, rs)
	case rs.Status != statusNotModified:
		h.partial(e, rs)
	}
	var pass func(header.ID) bool
	switch {
	case rs.Status == statusNotModified:
		pass = notModifiedField
		if e.etag == "" {
			pass = notModifiedFieldOrDate
		}
	case rs.Status == http1.StatusRangeNotSatisfiable:
		pass = notModifiedField
	}
	e.fields(&rs.Header, pass)
	for i := range extra {
		rs.Header.AddKnown(extra[i].ID, extra[i].Name, extra[i].Value)
	}
	if rs.Status == statusNotModified || h.ex.Request.Method == "HEAD" {
		h.seek(0, 0)
	} else {
		h.text(rs)
	}
	h.tell(e, rs)
}

// text hands a short body over as it lies in memory.
func (h *hit) text(rs *exchange.Response) {
	if rs.Status == http1.StatusRangeNotSatisfiable {
		return
	}
	mem, ok := h.body.one()
	if !ok {
		return
	}
	end := int64(len(mem))
	if h.end >= 0 {
		end = min(end, h.end)
	}
	if h.end = end; h.at < end {
		rs.Text = mem[h.at:end]
	}
	rs.Length = end - h.at
}

// tell adds Age and Cache-Status, and notes the use.
func (h *hit) tell(e *entry, rs *exchange.Response) {
	text := &h.ex.Text
	if !h.stored || e.age > 0 {
		age := e.ageAt(h.store.nowFor(h)) / second
		rs.Header.Add(header.Age, text.End(strconv.AppendInt(text.Begin(), min(age, longest), 10)))
	}
	b := text.Begin()
	if h.forwarded || h.collapsed {
		b = h.appendForward(b)
		if h.collapsed {
			b = append(b, "; collapsed"...)
		}
	} else {
		b = append(b, "headgate; hit"...)
	}
	if left := (e.life - e.ageAt(h.now)) / second; !h.stored {
		b = append(b, "; ttl="...)
		b = strconv.AppendInt(b, left, 10)
	}
	rs.Header.Add(header.CacheStatus, text.End(b))
	h.ex.Cache.Use = h.word()
}

func (h *hit) word() exchange.CacheUse {
	switch {
	case h.revalidated:
		return exchange.CacheRevalidated
	case h.stored:
		return exchange.CacheMiss
	case h.use == refreshing:
		return exchange.CacheStale
	case h.collapsed:
		return exchange.CacheCollapsed
	}
	return exchange.CacheHit
}

// nowFor returns the moment of a request; after a fetch it is read anew.
func (s *store) nowFor(h *hit) int64 {
	if h.forwarded {
		h.now = s.now()
	}
	return h.now
}

// The values of Cache-Status for requests that pass by (RFC 9211).
const (
	statusMethod  = "headgate; fwd=method"
	statusBypass  = "headgate; fwd=bypass"
	statusRequest = "headgate; fwd=request"
)

// appendForward appends why a request went on to the servers.
func (h *hit) appendForward(b []byte) []byte {
	b = append(b, "headgate; fwd="...)
	switch {
	case h.use == none && h.near:
		b = append(b, "vary-miss"...)
	case h.use == none:
		b = append(b, "uri-miss"...)
	case h.cc.has&(noCache|maxAge|minFresh) != 0:
		b = append(b, "request"...)
	default:
		b = append(b, "stale"...)
	}
	if h.revalidated {
		b = append(b, "; fwd-status=304"...)
	} else if h.forwardStatus > 0 {
		b = strconv.AppendInt(append(b, "; fwd-status="...), int64(h.forwardStatus), 10)
	}
	if h.stored {
		b = append(b, "; stored"...)
	}
	return b
}

// h304 makes the response a 304 if the client has it already (RFC 9111, section
// 4.3.2; RFC 9110, section 13.2.2).
func (h *hit) h304(e *entry, rs *exchange.Response) {
	rq := &h.ex.Request.Header
	if e.status != statusOK {
		return
	}
	switch {
	case rq.Has(header.IfNoneMatch):
		if !matches(rq, e.etag) {
			return
		}
	case rq.Has(header.IfModifiedSince):
		since, ok := parseDate(rq.Get(header.IfModifiedSince))
		last := e.modified
		if last == noDate {
			last = e.date
		}
		if !ok || last > since {
			return
		}
	default:
		return
	}
	rs.Status, rs.Length = statusNotModified, -1
}

const (
	statusOK      = 200
	statusPartial = 206
)

// notModifiedField says which fields a 304 has (RFC 9110, section 15.4.5).
func notModifiedField(id header.ID) bool {
	switch id {
	case header.CacheControl, header.CDNCacheControl, header.ContentLocation, header.Date, header.ETag, header.Expires,
		header.Vary, header.CacheStatus, header.StrictTransportSecurity:
		return true
	}
	return false
}

func notModifiedFieldOrDate(id header.ID) bool {
	return id == header.LastModified || notModifiedField(id)
}

// matches compares the tags of If-None-Match, which need be no more than weakly
// the same (RFC 9110, section 13.1.2).
func matches(rq *header.List, tag string) bool {
	for _, f := range rq.All() {
		if f.ID != header.IfNoneMatch {
			continue
		}
		if trim(f.Value) == "*" {
			return true
		}
		for rest := f.Value; rest != "" && tag != ""; {
			var one string
			one, rest = cutTag(rest)
			if one != "" && opaque(one) == opaque(tag) {
				return true
			}
		}
	}
	return false
}

// cutTag cuts the first tag off a list. There may be commas in one.
func cutTag(s string) (tag, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return trim(s[:i]), s[i+1:]
		}
	}
	return trim(s), ""
}

// opaque returns a tag without the mark of a weak one.
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }

// partial makes the response a part if the client wants one (RFC 9110, section
// 14.2). Several parts at once are answered with the whole, as the RFC allows.
func (h *hit) partial(e *entry, rs *exchange.Response) {
	rq := &h.ex.Request
	total := h.end
	if e.status != statusOK || total < 0 || !rq.Header.Has(header.Range) || rq.Method != "GET" || !h.ifRange(e) {
		return
	}
	first, last, ok, valid := parseRange(rq.Header.Get(header.Range), total)
	if !valid {
		return
	}
	if !ok {
		text := &h.ex.Text
		b := append(text.Begin(), "bytes */"...)
		b = strconv.AppendInt(b, total, 10)
		rs.Status, rs.Length, h.end = http1.StatusRangeNotSatisfiable, 0, 0
		rs.Header.Add(header.ContentRange, text.End(b))
		return
	}
	h.addContentRange(rs, first, last, total)
	h.seek(first, last+1)
	rs.Status, rs.Length = statusPartial, last+1-first
}

// addContentRange tells which bytes of how many a response has.
func (h *hit) addContentRange(rs *exchange.Response, first, last, total int64) {
	text := &h.ex.Text
	b := append(text.Begin(), "bytes "...)
	b = append(strconv.AppendInt(b, first, 10), '-')
	b = append(strconv.AppendInt(b, last, 10), '/')
	rs.Header.Add(header.ContentRange, text.End(strconv.AppendInt(b, total, 10)))
}

// seek moves to where a part begins.
func (h *hit) seek(at, end int64) {
	if h.body.whole.Load() {
		h.at, h.end = at, end
		return
	}
	h.body.mu.Lock()
	h.at, h.end = at, end
	h.body.mu.Unlock()
}

// ifRange reports whether a part of this entry is what the client means: it has
// the same strong tag, or the very date (RFC 9110, section 13.1.5).
func (h *hit) ifRange(e *entry) bool {
	rq := &h.ex.Request.Header
	if !rq.Has(header.IfRange) {
		return true
	}
	value := trim(rq.Get(header.IfRange))
	if value == "" {
		return false
	}
	if value[0] == '"' {
		return value == e.etag
	}
	date, ok := parseDate(value)
	// A date is strong if it was the last one for a while before the answer.
	return ok && date == e.modified && e.date-e.modified >= 60
}

// parseRange reads a single range of bytes. valid is false for what is to be
// ignored: other units, several ranges, mistakes. ok is false for a range that
// lies outside.
func parseRange(s string, total int64) (first, last int64, ok, valid bool) {
	unit, spec, found := strings.Cut(s, "=")
	if !found || !header.EqualFold(trim(unit), "bytes") {
		return 0, 0, false, false
	}
	from, to, found := strings.Cut(trim(spec), "-")
	if !found {
		return 0, 0, false, false
	}
	if from == "" {
		n, ok := position(to)
		if !ok {
			return 0, 0, false, false
		}
		return max(0, total-n), total - 1, n > 0 && total > 0, true
	}
	first, ok = position(from)
	if !ok {
		return 0, 0, false, false
	}
	last = total - 1
	if to != "" {
		end, ok := position(to)
		if !ok || end < first {
			return 0, 0, false, false
		}
		last = min(last, end)
	}
	return first, last, first < total, true
}

// position reads a number of bytes.
func position(s string) (n int64, ok bool) {
	if s == "" {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, false
		}
		if n = n*10 + int64(s[i]-'0'); n > 1<<53 {
			n = 1 << 53
		}
	}
	return n, true
}
