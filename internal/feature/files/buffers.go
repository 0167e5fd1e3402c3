package files

import (
	"errors"
	"io"
	"sync/atomic"

	"headgate/internal/exchange"
)

// buffers bounds the memory of request bodies whose length was not known, of all routes
// together.
type buffers struct{ used atomic.Int64 }

// maxBuffered is how much memory all buffers have, in bytes.
const maxBuffered = 128 << 20

// sharedBuffers returns the bound of the process.
func sharedBuffers(env exchange.Env) *buffers {
	return exchange.Keep(env, "request buffers", nil, func() *buffers { return &buffers{} })
}

// Retire does nothing: the buffers belong to requests.
func (b *buffers) Retire() {}

var (
	tooLong  = &exchange.Answer{Reason: exchange.LengthRequired, Cause: "fastcgi: the request body has no Content-Length and is larger than request_buffer"}
	noBuffer = &exchange.Answer{Reason: exchange.Overloaded, RetryAfter: 1, Cause: "fastcgi: too many request bodies without Content-Length are buffered"}
)

// respond answers ex with servers. A body whose length is not known is read into memory
// before, so that it is.
func (b *buffers) respond(ex *exchange.Exchange, servers exchange.Source, limit int64) *exchange.Answer {
	if ex.Request.Body == nil || ex.Request.Length >= 0 {
		return servers.Respond(ex)
	}
	kept, answer := b.fill(ex, limit)
	if answer != nil {
		return answer
	}
	answered := false
	defer func() {
		if !answered {
			kept.release()
		}
	}()
	answer = servers.Respond(ex)
	if body := ex.Response.Body; answer == nil && body != nil {
		ex.Response.Body, answered = &releasing{body, kept}, true // the server may still be reading
	}
	return answer
}

// releasing is the body of a response to a request that is in memory.
type releasing struct {
	exchange.Body
	kept *buffered
}

// Close ends both.
func (r *releasing) Close() error {
	err := r.Body.Close()
	r.kept.release()
	return err
}

// fill reads the body of ex into memory. It waits for the client as a server would.
func (b *buffers) fill(ex *exchange.Exchange, limit int64) (*buffered, *exchange.Answer) {
	rq := &ex.Request
	kept := &buffered{body: rq.Body, of: b}
	var piece [4 << 10]byte
	for {
		n, err := rq.Body.Read(piece[:])
		ex.Received += int64(n)
		if int64(len(kept.rest)+n) > limit {
			kept.release()
			return nil, tooLong
		}
		if n > 0 && !kept.append(piece[:n]) {
			kept.release()
			return nil, noBuffer
		}
		switch {
		case err == io.EOF:
			rq.Body, rq.Length, rq.Continue, ex.Received = kept, int64(len(kept.rest)), false, 0
			return kept, nil
		case err != nil:
			kept.release()
			if known := (*exchange.Error)(nil); errors.As(err, &known) {
				return nil, exchange.Fail(known.Reason, known.Error())
			}
			return nil, exchange.Fail(exchange.ClientClosed, err.Error())
		}
	}
}

// buffered is a body that is in memory.
type buffered struct {
	body  exchange.Body // of the client
	of    *buffers
	rest  []byte
	begun bool
	taken int64 // of the memory of all buffers, in bytes
}

// append adds a piece, and reports whether there is memory for it.
func (k *buffered) append(piece []byte) bool {
	k.rest = append(k.rest, piece...)
	more := int64(cap(k.rest)) - k.taken
	k.taken += more
	return k.of.used.Add(more) <= maxBuffered
}

// release gives the memory up. Calls after the first do nothing.
func (k *buffered) release() {
	k.of.used.Add(-k.taken)
	k.taken = 0
}

// Whole returns the body if nothing of it was read.
func (k *buffered) Whole() ([]byte, bool) { return k.rest, !k.begun }

// Read reads the next piece.
func (k *buffered) Read(p []byte) (int, error) {
	k.begun = true
	if len(k.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// Ready reports true.
func (k *buffered) Ready() bool { return true }

// Close closes the client's body.
func (k *buffered) Close() error { return k.body.Close() }
