package http2

import "sync"

// Chunk is memory for a piece of a body, of at most one frame. It is acquired with
// TakeChunk and released with Give, by its current owner.
type Chunk struct {
	// Mem is the memory; what lies between R and W was filled and not read yet.
	Mem  []byte
	R, W int

	next *Chunk
}

// Sizes of chunks, in bytes.
const (
	smallChunk = 4 << 10
	largeChunk = MaxFrameSize
)

// MinDirect is how much must be left of a frame, in bytes, for it to be read past
// the connection's buffer into a chunk of its own.
const MinDirect = largeChunk / 2

var (
	smallChunks = sync.Pool{New: func() any { return &Chunk{Mem: make([]byte, smallChunk)} }}
	largeChunks = sync.Pool{New: func() any { return &Chunk{Mem: make([]byte, largeChunk)} }}
)

// TakeChunk returns an empty chunk for size bytes, or for as many of them as go
// into one.
func TakeChunk(size int) *Chunk {
	if size > smallChunk {
		return largeChunks.Get().(*Chunk)
	}
	return smallChunks.Get().(*Chunk)
}

// Release returns the chunk for reuse.
func (k *Chunk) Release() {
	k.R, k.W, k.next = 0, 0, nil
	if len(k.Mem) > smallChunk {
		largeChunks.Put(k)
	} else {
		smallChunks.Put(k)
	}
}

// Rest returns what was not read yet, as a view.
func (k *Chunk) Rest() []byte { return k.Mem[k.R:k.W] }

// Chunks contains the pieces of a body that arrived and were not read yet, in
// order. The zero value is empty. It belongs to one goroutine at a time.
type Chunks struct {
	head, tail *Chunk
	size       int
}

// Size returns the number of bytes.
func (l *Chunks) Size() int { return l.size }

// Empty reports whether nothing is there.
func (l *Chunks) Empty() bool { return l.head == nil }

// Single reports whether all there is lies in one piece.
func (l *Chunks) Single() bool { return l.head != nil && l.head == l.tail }

// Put adds a copy of p.
func (l *Chunks) Put(p []byte) {
	l.size += len(p)
	for len(p) > 0 {
		if l.tail == nil || l.tail.W == len(l.tail.Mem) {
			l.link(TakeChunk(len(p)))
		}
		n := copy(l.tail.Mem[l.tail.W:], p)
		l.tail.W += n
		p = p[n:]
	}
}

// Add adds a chunk, which the list owns from then on.
func (l *Chunks) Add(k *Chunk) {
	l.size += k.W - k.R
	l.link(k)
}

func (l *Chunks) link(k *Chunk) {
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.next = k
	}
	l.tail = k
}

// Pop removes the first chunk, which the caller owns then. There has to be one.
func (l *Chunks) Pop() *Chunk {
	k := l.head
	if l.head = k.next; l.head == nil {
		l.tail = nil
	}
	k.next = nil
	l.size -= k.W - k.R
	return k
}

// Drop releases all pieces.
func (l *Chunks) Drop() {
	for k := l.head; k != nil; {
		next := k.next
		k.Release()
		k = next
	}
	*l = Chunks{}
}

// Slices of bytes that are to be written, and the boxes in which the pool holds
// them, so that giving one back allocates nothing.
var (
	outs  = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}
	boxes = sync.Pool{New: func() any { return new([]byte) }}
)

// TakeOut returns an empty slice to collect frames in.
func TakeOut() []byte {
	box := outs.Get().(*[]byte)
	b := (*box)[:0]
	*box = nil
	boxes.Put(box)
	return b
}

// GiveOut releases a slice, unless it has grown beyond keep bytes or is nil.
func GiveOut(b []byte, keep int) {
	if b == nil || cap(b) > keep {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = b
	outs.Put(box)
}
