package h3_test

import (
	"io"
	"testing"

	"headgate/internal/exchange"
)

// breaking is a body that breaks off behind one piece.
type breaking struct {
	piece string
	why   exchange.Reason
}

func (b *breaking) Read(p []byte) (int, error) {
	if n := copy(p, b.piece); n > 0 {
		b.piece = b.piece[n:]
		return n, nil
	}
	return 0, &exchange.Error{Reason: b.why, Err: io.ErrUnexpectedEOF}
}
func (b *breaking) Ready() bool  { return false }
func (b *breaking) Close() error { return nil }

// A response that its server has canceled is reset with H3_REQUEST_CANCELLED, and one
// that broke off otherwise with H3_INTERNAL_ERROR.
func TestCancelOfAServerIsPassedOn(t *testing.T) {
	for reason, want := range map[exchange.Reason]uint64{exchange.UpstreamCanceled: 0x10c, exchange.UpstreamReset: 0x102} {
		for _, length := range []int64{-1, 100} {
			f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
				ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, length, &breaking{"some", reason}
				return nil
			}, nil)
			c := f.dial()
			rs := c.await(c.stream(frame(1, section(get...)), true))
			if rs.reset() != want {
				t.Errorf("%v, length %d: got %+v, want a reset with %#x", reason, length, rs, want)
			}
			if got := f.logged(); got.reason != reason {
				t.Errorf("logged %v, want %v", got.reason, reason)
			}
		}
	}
}
