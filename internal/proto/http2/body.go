package http2

import "io"

// Body is what came of a body and was not read yet. The reader of the connection
// fills it, one goroutine reads it.
type Body struct {
	// Wake wakes who reads.
	Wake Signal

	current *Chunk // of who reads
	list    Chunks // guarded by the Writer's lock
}

// Receiver is the stream of a Body. Its Locked methods are called with the lock of the
// connection's Writer held.
type Receiver interface {
	// OverLocked is called when nothing is available to read. It returns io.EOF at the
	// end of the body, another error if the body was interrupted, and nil if more can
	// arrive.
	OverLocked() error
	// TookLocked is called after n bytes were read, so that the peer may send others.
	// whole means that the end of the body was read.
	TookLocked(n int64) (whole bool)
	// End is called when the body was read to its end, possibly more than once, and
	// returns io.EOF.
	End() error
	// Await waits for Wake. An error ends the read.
	Await() error
}

// PutLocked adds a copy of p.
func (b *Body) PutLocked(p []byte) {
	b.list.Put(p)
	b.Wake.Raise()
}

// AddLocked adds a chunk, which the body owns from then on.
func (b *Body) AddLocked(k *Chunk) {
	b.list.Add(k)
	b.Wake.Raise()
}

// EmptyLocked reports whether nothing is available to read. Only the reader may
// call it.
func (b *Body) EmptyLocked() bool { return b.current == nil && b.list.Empty() }

// SizeLocked returns the number of unread bytes.
func (b *Body) SizeLocked() int64 { return int64(b.list.Size()) }

// UnreadLocked returns how many bytes were not read. Only the reader may call
// it.
func (b *Body) UnreadLocked() int64 {
	n := b.SizeLocked()
	if b.current != nil {
		n += int64(b.current.W - b.current.R)
	}
	return n
}

// HasCurrent reports whether a piece was removed and not yet read. Only the reader may
// call it.
func (b *Body) HasCurrent() bool { return b.current != nil }

// SingleLocked returns all that is there if it lies in one piece, else nil. It is not
// read by that.
func (b *Body) SingleLocked() []byte {
	if b.current == nil && b.list.Single() {
		b.current = b.list.Pop()
	}
	if b.current == nil || !b.list.Empty() {
		return nil
	}
	return b.current.Rest()
}

// DropLocked releases the unread data.
func (b *Body) DropLocked() { b.list.Drop() }

// Reset releases all memory and clears Wake. There must be no reader.
func (b *Body) Reset() {
	if b.current != nil {
		b.current.Release()
		b.current = nil
	}
	b.list.Drop()
	b.Wake.Lower()
}

// Read reads into p, which is not empty. It waits until something is there. At the end
// it returns io.EOF, along with the last bytes if it can.
func (b *Body) Read(p []byte, w *Writer, r Receiver) (int, error) {
	if b.current == nil {
		if err := b.next(w, r); err != nil {
			return 0, err
		}
	}
	k := b.current
	n := copy(p, k.Rest())
	if k.R += n; k.R == k.W {
		k.Release()
		b.current = nil
	}
	if b.took(n, w, r) {
		return n, r.End()
	}
	return n, nil
}

// Next removes the next piece, which counts as read. The caller releases the chunk.
func (b *Body) Next(w *Writer, r Receiver) (*Chunk, error) {
	if b.current == nil {
		if err := b.next(w, r); err != nil {
			return nil, err
		}
	}
	k := b.current
	b.current = nil
	b.took(k.W-k.R, w, r)
	return k, nil
}

// next waits for a chunk and makes it the current one.
func (b *Body) next(w *Writer, r Receiver) error {
	for {
		w.Lock()
		if !b.list.Empty() {
			b.current = b.list.Pop()
			w.Unlock()
			return nil
		}
		err := r.OverLocked()
		w.Unlock()
		if err == io.EOF {
			return r.End()
		}
		if err == nil {
			err = r.Await()
		}
		if err != nil {
			return err
		}
	}
}

// took reports n bytes to the stream that were read, and returns whether that was the
// end.
func (b *Body) took(n int, w *Writer, r Receiver) bool {
	w.Lock()
	whole := r.TookLocked(int64(n)) && b.EmptyLocked()
	due := w.DueLocked()
	w.Unlock()
	if due {
		w.Flush()
	}
	return whole
}

// MaxStreamWindow is the largest window that a stream gets, in bytes.
const MaxStreamWindow = 1 << 20

// Window is what the peer may send on a stream. It starts with InitialWindow (RFC
// 9113, section 6.9.2) and grows while the body is read as fast as it arrives.
type Window struct {
	room     int64 // what the peer may send
	consumed int64 // what was read and not granted anew
	target   int64 // the window that the peer is to see
}

// NewWindow returns the initial window of a stream.
func NewWindow() Window { return Window{room: InitialWindow, target: InitialWindow} }

// Receive counts a frame of n bytes, of which used are used up at once. It reports
// whether the peer was allowed to send it.
func (w *Window) Receive(n, used int) bool {
	w.room -= int64(n)
	w.consumed += int64(used)
	return w.room >= 0
}

// Read counts n bytes that were read. It returns the increment for a WINDOW_UPDATE
// frame, 0 if that is not worth a frame yet.
func (w *Window) Read(n int64) (by int64) {
	w.consumed += n
	if w.consumed < w.target/4 {
		return 0
	}
	if w.room < w.target/2 && w.target < MaxStreamWindow {
		grow := min(w.target, MaxStreamWindow-w.target)
		w.target += grow
		w.consumed += grow
	}
	by, w.consumed = w.consumed, 0
	w.room += by
	return by
}
