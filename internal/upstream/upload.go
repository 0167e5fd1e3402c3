package upstream

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
	"headgate/internal/upstream/fcgi"
)

// upload is a request body on its way to a server, while another goroutine
// reads what the server says. A nil upload is none.
type upload struct {
	nc      *netconn.Conn
	body    exchange.Body
	ex      *exchange.Exchange
	framing framing

	done     chan struct{}
	finished atomic.Int64 // when it ended by exchange.Now, 0 before
	err      error        // after done
}

// copySize is the size of the pieces a body is copied in, in bytes.
const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// framing is how a server finds the end of a request body.
type framing uint8

const (
	plain     framing = iota // by its length
	asChunks                 // RFC 9112, section 7.1
	asRecords                // of FastCGI
)

// framingOf returns the framing of a body over HTTP/1.1.
func framingOf(ex *exchange.Exchange) framing {
	if ex.Request.Length < 0 {
		return asChunks
	}
	return plain
}

// startUpload starts to send the body of ex. Nothing else may write to nc, or read the
// body, until it has ended.
func startUpload(nc *netconn.Conn, ex *exchange.Exchange, f framing) *upload {
	u := &upload{nc: nc, body: ex.Request.Body, ex: ex, framing: f, done: make(chan struct{})}
	go u.run()
	return u
}

func (u *upload) run() {
	defer u.end()
	u.err = u.send()
	if u.err == nil {
		u.err = u.nc.Flush()
	}
}

// end wakes the waiting goroutine. A panic here comes from the client's side: the body that
// was read.
func (u *upload) end() {
	if v := recover(); v != nil {
		u.ex.Broken(v, "request body")
		u.err = &exchange.Error{Reason: exchange.Internal, Err: fmt.Errorf("the request body: %v", v)}
	}
	u.finished.Store(exchange.Now())
	close(u.done)
	if _, client := u.err.(*exchange.Error); client {
		// the client failed: stop waiting for the server
		u.nc.Kick()
	}
}

// send copies the body. Whenever the client has nothing more to send at the
// moment, it flushes what was read.
func (u *upload) send() error {
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	for {
		n, err := u.body.Read(p[:])
		u.ex.Received += int64(n)
		if n > 0 {
			if werr := u.write(p[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF:
			switch u.framing {
			case asChunks:
				u.nc.SetPending(http1.AppendTrailers(u.nc.Pending(), u.ex.RequestTrailer()))
			case asRecords:
				u.nc.SetPending(fcgi.AppendInputHeader(u.nc.Pending(), 0))
			}
			return nil
		case err != nil:
			return clientError(err)
		case !u.body.Ready():
			if werr := u.nc.Flush(); werr != nil {
				return werr
			}
		}
	}
}

func (u *upload) write(p []byte) error {
	switch u.framing {
	case asRecords:
		u.nc.SetPending(fcgi.AppendInputHeader(u.nc.Pending(), len(p)))
		fallthrough
	case plain:
		_, err := u.nc.Write(p)
		return err
	}
	u.nc.SetPending(http1.AppendChunkHeader(u.nc.Pending(), int64(len(p))))
	if _, err := u.nc.Write(p); err != nil {
		return err
	}
	u.nc.SetPending(append(u.nc.Pending(), http1.CRLF...))
	return nil
}

// clientError assigns a reason to an error of the client's body.
func clientError(err error) error {
	if e, ok := err.(*exchange.Error); ok {
		return e
	}
	return &exchange.Error{Reason: exchange.ClientClosed, Err: err}
}

// running reports whether the upload has not ended.
func (u *upload) running() bool { return u != nil && u.finished.Load() == 0 }

// settleTime is how long an upload may take to end after the complete response.
// A fast server responds before our write of the last bytes has returned.
const settleTime = 10 * time.Millisecond

// resetTime is how long an upload waits for a reset of the connection, once all data of the
// server is read. The reset arrives at the same moment, so most of the time is for a busy
// machine. Only the end of a response waits for it, while its request is still being sent.
const resetTime = 100 * time.Millisecond

// metReset reports whether the upload has ended because the server has reset its
// connection. After an orderly end of what the server says a write fails otherwise
// (EPIPE).
func (u *upload) metReset() bool {
	return u.settled(resetTime) && errors.Is(u.wait(), syscall.ECONNRESET)
}

// settled reports whether the upload has ended, or ends within a moment.
func (u *upload) settled(moment time.Duration) bool {
	if !u.running() {
		return true
	}
	soon := time.NewTimer(moment)
	defer soon.Stop()
	select {
	case <-u.done:
		return true
	case <-soon.C:
		return false
	}
}

// finishedAt returns when the upload ended, 0 if it has not or there is none.
func (u *upload) finishedAt() int64 {
	if u == nil {
		return 0
	}
	return u.finished.Load()
}

// wait waits for the end and returns the error.
func (u *upload) wait() error {
	<-u.done
	return u.err
}

// abort ends the upload and waits until it has: the client's body is abandoned, and a write
// to the server is interrupted by closing its connection.
func (u *upload) abort() {
	if u.running() {
		u.body.Close()
		u.nc.Close()
	}
	<-u.done
}
