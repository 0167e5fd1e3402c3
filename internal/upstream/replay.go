package upstream

import (
	"io"
	"sync/atomic"

	"headgate/internal/exchange"
)

// maxReplay is the largest request body that is kept to be sent again, in bytes.
const maxReplay = 64 << 10

// replay is a request body that can be sent more than once. It passes on data as it
// arrives, and keeps it. Readers must be done, as after upload.abort, before rewind is
// called.
type replay struct {
	body exchange.Body
	// length is -1 if it was not known before. If it was, there are no trailers behind the
	// body.
	length int64
	limit  int         // how much is kept, in bytes
	full   atomic.Bool // no byte is missing of a body whose length is known
	whole  atomic.Bool // all of the body came, with its end, and is kept
	lost   atomic.Bool // it is too long, incomplete or was abandoned

	// owned by who reads
	kept []byte
	at   int // how much of kept this try has read
}

func newReplay(body exchange.Body, length int64, limit int) *replay {
	r := &replay{body: body, length: length, limit: limit}
	if w, ok := body.(exchange.Whole); ok && length >= 0 {
		if all, ok := w.Whole(); ok {
			r.kept = all
			r.whole.Store(true)
		}
	}
	return r
}

// Read reads what is kept, and what is not kept yet from the client.
func (r *replay) Read(p []byte) (int, error) {
	if r.at < len(r.kept) {
		n := copy(p, r.kept[r.at:])
		r.at += n
		return n, nil
	}
	if r.whole.Load() {
		return 0, io.EOF
	}
	n, err := r.body.Read(p)
	switch {
	case r.lost.Load():
	case r.full.Load(): // only the end was missing; what is kept may be in use
		r.whole.Store(err == io.EOF)
	case len(r.kept)+n > r.limit || err != nil && err != io.EOF:
		r.lost.Store(true)
		r.kept, r.at = nil, 0
	default:
		if n > 0 {
			r.kept = append(r.kept, p[:n]...)
			r.at = len(r.kept)
			r.full.Store(int64(len(r.kept)) == r.length)
		}
		r.whole.Store(err == io.EOF)
	}
	return n, err
}

// all returns the body if it is kept completely, although its end may not have been
// signalled yet: over HTTP/2 that can follow later. It is safe for concurrent use.
func (r *replay) all() ([]byte, bool) {
	if !r.complete() {
		return nil, false
	}
	return r.kept, true
}

// complete reports whether all returns the body. It is safe for concurrent use.
func (r *replay) complete() bool {
	return !r.lost.Load() && (r.whole.Load() || r.full.Load())
}

// Ready reports whether Read would not wait.
func (r *replay) Ready() bool {
	return r.at < len(r.kept) || r.whole.Load() || r.body.Ready()
}

// Whole returns the body once all of it has arrived, if this attempt has read no part of
// it.
func (r *replay) Whole() ([]byte, bool) {
	if r.length < 0 || !r.whole.Load() || r.at > 0 {
		return nil, false
	}
	return r.kept, true
}

// Close discards what the client has not sent yet.
func (r *replay) Close() error {
	if r.whole.Load() {
		return nil
	}
	if !r.full.Load() {
		r.lost.Store(true)
	}
	return r.body.Close()
}

// rewindable reports whether rewind would find the body whole, or untouched.
func (r *replay) rewindable(ex *exchange.Exchange) bool {
	return r.complete() || !r.lost.Load() && ex.Received == 0
}

// rewind makes the body of ex ready for another attempt; it reports false when there
// is none for it.
func (r *replay) rewind(ex *exchange.Exchange) bool {
	if !r.rewindable(ex) {
		return false
	}
	r.at, ex.Received = 0, 0
	if r.complete() {
		r.whole.Store(true)         // the next attempt does not wait for an end without data
		ex.Request.Continue = false // the client has sent it already
	}
	return true
}
