package wire_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/wire"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a connection that gives text and ends, and the body that reads it.
type source struct {
	wire.Body
	buf     netconn.Buffer
	trailer header.List
	far     *net.TCPConn
}

func newSource(t *testing.T, framing http1.Framing, length int64, pieces ...string) *source {
	t.Helper()
	near, far := testhouse.Pair(t)
	c := netconn.New(near)
	c.SetReadWait(20 * time.Second)
	s := &source{far: far}
	s.far.SetNoDelay(true)
	for _, p := range pieces {
		io.WriteString(far, p)
	}
	s.Reset(c, &s.buf, framing, length, &http1.Limits{}, &s.trailer)
	return s
}

func TestReadsEveryFramingInPiecesOfEverySize(t *testing.T) {
	text := strings.Repeat("0123456789", 3000)
	var chunks strings.Builder
	for i := 0; i < len(text); i += 5000 {
		chunks.WriteString("1388\r\n" + text[i:i+5000] + "\r\n")
	}
	for _, size := range []int{1, 100, 4095, 4096, 32 << 10} {
		for _, c := range []struct {
			framing http1.Framing
			length  int64
			wire    string
		}{
			{http1.Length, int64(len(text)), text + "next"},
			{http1.Chunked, -1, chunks.String() + "0\r\nETag: x\r\n\r\nnext"},
			{http1.UntilClose, -1, text},
		} {
			s := newSource(t, c.framing, c.length)
			go func() {
				io.WriteString(s.far, c.wire)
				s.far.CloseWrite()
			}()
			var got strings.Builder
			p := make([]byte, size)
			var err error
			for err == nil {
				var n int
				n, err = s.Read(p)
				got.Write(p[:n])
			}
			if err != io.EOF || got.String() != text || !s.Done() {
				t.Errorf("%v by %d: %d bytes, %v", c.framing, size, got.Len(), err)
			}
			if n, err := s.Read(p); n != 0 || err != io.EOF {
				t.Errorf("%v by %d: after the end %d, %v", c.framing, size, n, err)
			}
			if c.framing == http1.Chunked && s.trailer.Get(header.ETag) != "x" {
				t.Errorf("trailers %v", s.trailer.All())
			}
			if left := string(s.buf.Bytes()); !strings.HasPrefix("next", left) {
				t.Errorf("%v by %d: behind the body %q", c.framing, size, left)
			}
		}
	}
}

func TestBodiesThatEndEarly(t *testing.T) {
	for _, c := range []struct {
		framing http1.Framing
		length  int64
		wire    string
		reset   bool
		want    error
	}{
		{http1.Length, 5, "abc", false, io.ErrUnexpectedEOF},
		{http1.Chunked, -1, "5\r\nabc", false, io.ErrUnexpectedEOF},
		{http1.Chunked, -1, "3\r\nabc\r\n", false, io.ErrUnexpectedEOF},
		{http1.Chunked, -1, "3\r\nabc\r\n0\r\n", false, io.ErrUnexpectedEOF},
		{http1.Chunked, -1, "3\r\nabcX", false, http1.BadChunkEnd},
		{http1.UntilClose, -1, "", true, nil},
	} {
		for _, ask := range []bool{false, true} {
			s := newSource(t, c.framing, c.length, c.wire)
			if c.reset {
				s.far.SetLinger(0)
				s.far.Close()
			} else {
				s.far.CloseWrite()
			}
			p := make([]byte, 100)
			var err error
			for err == nil {
				if ask {
					for !s.Ready() {
					}
				}
				_, err = s.Read(p)
			}
			if c.want != nil && !errors.Is(err, c.want) || err == io.EOF || s.Done() {
				t.Errorf("%v %q, asked %v: %v, done %v", c.framing, c.wire, ask, err, s.Done())
			}
			if _, again := s.Read(p); again != err {
				t.Errorf("%v %q: then %v", c.framing, c.wire, again)
			}
		}
	}
}

func TestWhole(t *testing.T) {
	s := newSource(t, http1.Length, 5, "hellonext")
	if _, ok := s.Whole(); ok {
		t.Error("whole before anything was read")
	}
	for !s.Ready() {
	}
	if all, ok := s.Whole(); !ok || string(all) != "hello" {
		t.Errorf("got %q, %v", all, ok)
	}
	s.Consume()
	if !s.Done() || string(s.buf.Bytes()) != "next" {
		t.Errorf("done %v, behind it %q", s.Done(), s.buf.Bytes())
	}
}

// On a connection that cannot tell what is there without waiting, as under TLS, a
// body is seen by waiting for a moment, and read on as if nobody had.
func TestLookSeesABodyThatCannotBeSeenWithoutWaiting(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := netconn.New(near)
	c.SetReadWait(20 * time.Second)
	var buf netconn.Buffer
	var trailer header.List
	var b wire.Body
	b.Reset(c, &buf, http1.Length, 5, &http1.Limits{}, &trailer)
	if b.ReadyWithin(time.Millisecond) {
		t.Error("a body is seen before it was sent")
	}
	go io.WriteString(far, "hello")
	for until := time.Now().Add(time.Minute); !b.ReadyWithin(time.Millisecond); {
		if time.Now().After(until) {
			t.Fatal("the body is not seen")
		}
	}
	c.SetReadWait(20 * time.Second)
	if text, err := io.ReadAll(&b); string(text) != "hello" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	b.Reset(c, &buf, http1.Length, 5, &http1.Limits{}, &trailer)
	far.Close()
	if !b.ReadyWithin(time.Second) || !errors.Is(b.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("a client that left: %v", b.Err())
	}
}

// Behind a response nothing may follow: what does is seen where the reader has room for it,
// and else it is told that it may not have been.
func TestWhatFollowsAResponseIsSeen(t *testing.T) {
	text := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		wire           string
		size           int // of the reads
		followed, sure bool
	}{
		"nothing":                             {text, 32 << 10, false, true},
		"something":                           {text + "more", 32 << 10, true, true},
		"nothing, by reads of its length":     {text, len(text), false, false},
		"something, by reads of its length":   {text + "more", len(text), false, false},
		"nothing, by reads of the buffer":     {text, 100, false, true},
		"something, by reads of the buffer":   {text + "more", 100, true, true},
		"something, where the buffer is full": {text[:4096] + "more", 100, false, false},
	} {
		s := newSource(t, http1.Length, int64(strings.LastIndexByte(c.wire, 'x')+1), c.wire)
		s.Sole()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{s}, make([]byte, c.size))
		if followed, sure := s.Followed(); err != nil || int(n) != strings.Count(c.wire, "x") || followed != c.followed || sure != c.sure {
			t.Errorf("%s: %d bytes, %v, followed %v, sure %v", name, n, err, followed, sure)
		}
	}
}
