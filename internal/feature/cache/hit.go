package cache

import (
	"io"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
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
	wanted            use // before it waited for another request's answer
	wantedNear        bool
	partly            bool // a part is to be fetched
	forwarded, stored bool
	revalidated       bool
	forwardStatus     int
	spare             *entry         // held while waiting
	extra             []header.Field // for this client only
	post              *post          // what is stored of the answer to a POST

	// what it gets
	e       *entry
	body    *body
	reading bool
	lost    bool
	at, end int64 // end is -1 until it is known
	piece   int   // where at is, in a whole body
	begins  int64
}

// open acquires the caller's hold on an entry, and joins its body. It returns
// false, and has released the hold, if the body was interrupted meanwhile.
func (h *hit) open(e *entry) bool {
	h.at, h.lost, h.piece, h.begins = 0, false, 0, 0 // before others see it among the readers
	if !e.body.join(h) {
		e.release()
		return false
	}
	h.e, h.body, h.reading, h.end = e, e.body, true, e.body.total()
	return true
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
