package bodylimit

import (
	"errors"
	"io"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/setting/unit"
)

// text is a request body that is at hand.
type text struct{ io.Reader }

func (text) Ready() bool  { return true }
func (text) Close() error { return nil }

func TestLength(t *testing.T) {
	limit := unit.Size(10)
	f, _ := Compile(&limit, exchange.Env{})
	for _, c := range []struct {
		length int64
		want   exchange.Reason
	}{{0, exchange.None}, {10, exchange.None}, {11, exchange.BodyTooLarge}, {1 << 40, exchange.BodyTooLarge}} {
		ex := &exchange.Exchange{}
		ex.Request.Length = c.length
		answer := f.Request(ex)
		got := exchange.None
		if answer != nil {
			got = answer.Reason
		}
		if got != c.want {
			t.Errorf("length %d: got %q, want %q", c.length, got, c.want)
		}
	}
}

func TestStreamedBody(t *testing.T) {
	for _, c := range []struct {
		size int
		fits bool
	}{{0, true}, {9, true}, {10, true}, {11, false}, {100_000, false}} {
		ex := &exchange.Exchange{}
		ex.Request.Length = -1
		ex.Request.Body = text{strings.NewReader(strings.Repeat("x", c.size))}
		limit := unit.Size(10)
		f, _ := Compile(&limit, exchange.Env{})
		if answer := f.Request(ex); answer != nil {
			t.Fatalf("size %d: answered before the body was read: %v", c.size, answer.Reason)
		}
		got, err := io.ReadAll(ex.Request.Body)
		var e *exchange.Error
		switch {
		case c.fits && (err != nil || len(got) != c.size):
			t.Errorf("size %d: got %d bytes, %v; want all of it", c.size, len(got), err)
		case !c.fits && (!errors.As(err, &e) || e.Reason != exchange.BodyTooLarge || len(got) > 10):
			t.Errorf("size %d: got %d bytes, %v; want body_too_large after at most 10", c.size, len(got), err)
		}
	}
}
