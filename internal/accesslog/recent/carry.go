package recent

import (
	"encoding/binary"
	"slices"

	"headgate/internal/exchange"
)

// layout is the version of the records that Export writes: their fixed part, the texts in
// it, and the numbers of reasons and protocols. A process does not read those of another
// version.
const layout = 2

// Export returns the newest records for another process, up to limit bytes, in the order in
// which they ended, and a reader of those that come from then on. Moments in them are
// nanoseconds of Unix time, and each request has its id as a text, as numbers mean
// something in this process only.
func (r *Ring) Export(limit int) ([]byte, *Fresh) {
	parts := r.hold(0)
	defer r.release(parts)
	c := &cursor{}
	for _, p := range parts {
		c.newest = max(c.newest, p.order)
	}
	all, _ := c.advance(parts)
	return export(all, limit), &Fresh{r, c}
}

func export(parts [][]byte, limit int) []byte {
	wall, records, size := wallClock(), inOrder(parts), 1
	first := len(records)
	for ; first > 0; first-- {
		if size += len(records[first-1].v) + exchange.MaxID; size > limit {
			break
		}
	}
	out := []byte{layout}
	for _, f := range records[first:] {
		out = f.v.export(out, wall)
	}
	return out
}

// export appends the record.
func (v view) export(out []byte, wall int64) []byte {
	at := len(out)
	out = append(out, v...)
	le := binary.LittleEndian
	if !v.isSession() && v.length(textID) == 0 { // the last of the texts
		id := exchange.IDOf(v.number())
		out = append(out, id...)
		le.PutUint16(out[at+atTexts+2*textID:], uint16(len(id)))
		le.PutUint16(out[at+atLength:], uint16(len(out)-at))
	}
	le.PutUint64(out[at+atStart:], uint64(v.start()+wall))
	le.PutUint64(out[at+atEnd:], uint64(v.end()+wall))
	return out
}

// Import adds the records that Export returned in another process. What cannot be read is
// left out.
func (r *Ring) Import(data []byte) {
	if len(data) == 0 || data[0] != layout {
		return
	}
	wall := wallClock()
	for rest := data[1:]; len(rest) >= fixed; {
		n := int(binary.LittleEndian.Uint16(rest))
		if n < fixed || n > maxRecord || n > len(rest) {
			return
		}
		if v := view(slices.Clone(rest[:n])); v.valid() {
			binary.LittleEndian.PutUint64(v[atStart:], uint64(v.start()-wall))
			binary.LittleEndian.PutUint64(v[atEnd:], uint64(v.end()-wall))
			r.add(v)
		}
		rest = rest[n:]
	}
}

// valid reports whether a record of another process can be read.
func (v view) valid() bool {
	n := fixed
	for i, limit := range limits {
		if v.length(i) > limit {
			return false
		}
		n += v.length(i)
	}
	proto := v[atProto]
	return n == len(v) && exchange.Reason(v[atReason]).Known() && (proto == protoTCP || proto == protoUDP || exchange.Proto(proto).String() != "")
}

// add keeps a record that is complete.
func (r *Ring) add(v view) {
	c := ordinary
	if v.status() >= 400 || exchange.Reason(v[atReason]) != exchange.None || !v.isSession() && v.status() != 101 && v.end()-v.start() >= r.slow {
		c = notable
	}
	l := r.lockLane()
	b := r.roomLocked(l, c)
	b.buf = append(b.buf, v...)
	l.mu.Unlock()
	r.pool.Put(l)
}

// Fresh reads the records that come after an Export. It is for one goroutine.
type Fresh struct {
	ring   *Ring
	cursor *cursor
}

// Export returns the records since the call before, as Ring.Export does; nil for none.
func (f *Fresh) Export(limit int) []byte {
	parts := f.ring.hold(f.cursor.from)
	defer f.ring.release(parts)
	fresh, _ := f.cursor.advance(parts)
	if len(fresh) == 0 {
		return nil
	}
	return export(fresh, limit)
}
