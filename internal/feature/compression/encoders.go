package compression

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/andybalholm/brotli/matchfinder"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"headgate/internal/exchange"
)

// encoder compresses what is written into what Reset named.
type encoder interface {
	io.Writer
	// Flush makes what was written readable. It does nothing for an encoder that
	// cannot.
	Flush() error
	Close() error
	Reset(io.Writer)
}

// kind is a kind of encoder.
type kind uint8

const (
	gzipKind kind = iota
	zstdKind
	brotliKind     // can flush
	longBrotliKind // faster, and cannot
	kinds
)

// Windows are limited, which limits the memory of an encoder and of its clients. Browsers
// accept no zstd window above 8 MiB (RFC 9659).
const (
	zstdWindow   = 1 << 19
	brotliWindow = 18 // bits: 256 KiB
	brotliBlock  = 64 << 10
	gzipLevel    = 5
	brotliLevel  = 4
)

// costs is the memory that an encoder of each kind takes, in bytes, as measured.
var costs = [kinds]int64{gzipKind: 1280 << 10, zstdKind: 2560 << 10, brotliKind: 3 << 20, longBrotliKind: 5 << 20}

// budget is the memory for encoders that are at work at once, in bytes. When it is
// spent, responses are sent as they are.
const budget = 256 << 20

// encoders are the encoders of the process. They are reused, and unused ones are garbage
// collected. It is safe for concurrent use.
type encoders struct {
	free  atomic.Int64
	pools [kinds]sync.Pool
}

func newEncoders() *encoders {
	e := &encoders{}
	e.free.Store(budget)
	return e
}

// Retire does nothing: idle encoders hold nothing but memory.
func (e *encoders) Retire() {}

// shared returns the encoders that all routes have in common.
func shared(env exchange.Env) *encoders {
	return exchange.Keep(env, "compression encoders", nil, newEncoders)
}

// acquire returns an encoder that writes to w, or nil when there is no memory for one.
func (e *encoders) acquire(k kind, w io.Writer) encoder {
	if e.free.Add(-costs[k]) < 0 {
		e.free.Add(costs[k])
		return nil
	}
	enc, _ := e.pools[k].Get().(encoder)
	if enc == nil {
		enc = newEncoder(k)
	}
	enc.Reset(w)
	return enc
}

// release returns an encoder for reuse. It is reset when it is taken the next time: for some
// that is much work.
func (e *encoders) release(k kind, enc encoder) {
	e.pools[k].Put(enc)
	e.free.Add(costs[k])
}

func newEncoder(k kind) encoder {
	switch k {
	case gzipKind:
		w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
		mustBe(err)
		return w
	case zstdKind:
		w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow))
		mustBe(err)
		return w
	case brotliKind:
		return brotli.NewWriterOptions(io.Discard, brotli.WriterOptions{Quality: brotliLevel, LGWin: brotliWindow})
	}
	return &longBrotli{matchfinder.Writer{
		MatchFinder: &matchfinder.Trio{MaxDistance: 1 << brotliWindow}, Encoder: &brotli.Encoder{}, BlockSize: brotliBlock,
	}}
}

// mustBe holds that our own options are valid.
func mustBe(err error) {
	if err != nil {
		panic("compression: " + err.Error())
	}
}

// longBrotli is the faster of the library's two: what brotli.NewWriterV2 makes at
// level 4, with a smaller window. It has no way to flush.
type longBrotli struct{ matchfinder.Writer }

// Flush does nothing.
func (*longBrotli) Flush() error { return nil }
