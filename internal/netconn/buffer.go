package netconn

import "sync"

// Sizes of buffers, in bytes. A buffer starts small and grows by doubling.
const (
	firstSize = 4 << 10
	outSize   = 4 << 10
)

// Buffer holds bytes that were read and not yet used. Its memory comes from a
// pool when the first byte is read and goes back by Release, so a connection
// that waits holds none. The zero value is empty and ready.
type Buffer struct {
	mem  *[]byte
	b    []byte
	r, w int

	hold int     // what lies before is looked at and stays as it is
	held *[]byte // memory that is looked at and not read into any more
}

// holdLeast is the free space, in bytes, behind held bytes that makes a read
// there worthwhile.
const holdLeast = 1 << 10

// Bytes returns the unused bytes. They are valid until the next read that has
// to move them: Compact, Grow and Release.
func (b *Buffer) Bytes() []byte { return b.b[b.r:b.w] }

// Len returns the number of unused bytes.
func (b *Buffer) Len() int { return b.w - b.r }

// Cap returns the size of the memory, 0 if none is held.
func (b *Buffer) Cap() int { return len(b.b) }

// unused reports whether Release would release the memory.
func (b *Buffer) unused() bool { return b.r == b.w && b.hold == 0 }

// Use marks the first n unused bytes as used.
func (b *Buffer) Use(n int) { b.r += n }

// adopt makes p, which is not used elsewhere any more, the unused bytes of an empty
// buffer.
func (b *Buffer) adopt(p []byte) {
	b.Drop()
	b.b, b.r, b.w = p, 0, len(p)
}

// Full reports whether no more can be read without Compact or Grow.
func (b *Buffer) Full() bool { return b.w == len(b.b) && b.b != nil }

// Hold keeps the bytes that were used as they are until Free: views into them
// live although more is read, and although the memory is dropped.
func (b *Buffer) Hold() { b.hold = b.r }

// Free ends Hold. Views into what was held must be dead.
func (b *Buffer) Free() {
	b.hold = 0
	if b.held != nil {
		scribble(*b.held)
		buffers.Put(b.held)
		b.held = nil
	}
}

// part leaves the memory to what is held in it. What is unused is lost.
func (b *Buffer) part() { *b = Buffer{held: b.mem} }

// Compact moves the unused bytes to the front. Views into them are lost.
func (b *Buffer) Compact() {
	if b.r > b.hold {
		b.w = b.hold + copy(b.b[b.hold:], b.b[b.r:b.w])
		b.r = b.hold
	}
}

// Grow makes space for at least one more read, up to max bytes in total, and
// reports whether it could. Views into the bytes stay valid but are no longer
// part of the buffer.
func (b *Buffer) Grow(max int) bool {
	if b.b == nil || !b.Full() {
		return true
	}
	if b.r > b.hold && b.Len() <= len(b.b)/2 {
		b.Compact()
		return true
	}
	if len(b.b) >= max {
		return false
	}
	bigger := make([]byte, min(2*len(b.b), max))
	n := copy(bigger, b.Bytes())
	// The memory before is left to the collector and not to the pool: views
	// may still look at it.
	b.mem, b.b, b.r, b.w, b.hold = nil, bigger, 0, n, 0
	return true
}

// Release releases the memory if no byte in it is unused or held. Views into
// it must no longer be used.
func (b *Buffer) Release() {
	if b.r < b.w || b.hold > 0 {
		return
	}
	b.Drop()
}

// Drop discards the unused bytes and releases the memory, except for what is
// held.
func (b *Buffer) Drop() {
	if b.hold > 0 {
		b.part()
		return
	}
	if b.mem != nil {
		scribble(*b.mem)
		buffers.Put(b.mem)
	}
	*b = Buffer{held: b.held}
}

// space returns where to read to.
func (b *Buffer) space() []byte {
	if b.b != nil && b.r == b.w {
		b.r, b.w = b.hold, b.hold
		if b.hold > 0 && len(b.b)-b.hold < holdLeast {
			b.part()
		}
	}
	if b.b == nil {
		b.mem = buffers.Get().(*[]byte)
		b.b = *b.mem
	}
	return b.b[b.w:]
}

// buffers holds memory for reading.
var buffers = sync.Pool{New: func() any { b := make([]byte, firstSize); return &b }}

// outs holds memory for collecting. The boxes of the slices have a pool of
// their own so that giving back allocates nothing.
var (
	outs  sync.Pool
	boxes = sync.Pool{New: func() any { return new([]byte) }}
)

func takeOut() []byte {
	box, _ := outs.Get().(*[]byte)
	if box == nil {
		return make([]byte, 0, outSize)
	}
	b := *box
	*box = nil
	boxes.Put(box)
	return b[:0]
}

func giveOut(b []byte) {
	if cap(b) < outSize || cap(b) > 2*MaxPending {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = b
	outs.Put(box)
}
