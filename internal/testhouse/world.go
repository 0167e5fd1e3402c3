package testhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// World is the server for random scenarios of clients. Each path is a number, which
// determines what the server does with a request and what it answers, and so what a client
// must get. The zero value is ready; concurrent calls are allowed.
type World struct {
	mu    sync.Mutex
	wrong []string

	round  atomic.Int64 // a slow body waits for the next one
	over   atomic.Bool  // no waiter is left
	panics atomic.Int64 // that the server made
	broken atomic.Int64 // broken invariants in the log
}

// Fault notes what must not be.
func (w *World) Fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// Report fails a test if something invalid happened, and prints it after the actions.
func (w *World) Report(t testing.TB, told []string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) > 0 {
		for _, line := range append(told, w.wrong...) {
			t.Error(line)
		}
	}
}

// Next lets slow bodies send another piece.
func (w *World) Next() { w.round.Add(1) }

// End lets slow bodies be as quick as others.
func (w *World) End() { w.over.Store(true) }

// Log returns a log to which more broken invariants than the server has made are a fault.
func (w *World) Log() *slog.Logger { return slog.New(brokenLog{w}) }

type brokenLog struct{ *World }

func (l brokenLog) Enabled(context.Context, slog.Level) bool { return true }
func (l brokenLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l brokenLog) WithGroup(string) slog.Handler            { return l }
func (l brokenLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "broken invariant" && l.broken.Add(1) > l.panics.Load() {
		r.Attrs(func(a slog.Attr) bool { l.Fault("%s", a); return true })
	}
	return nil
}

// Script is what the server does with a request.
type Script struct {
	Seed   uint64
	Status int
	Size   int   // of the body as it was meant
	Length int64 // as in the head
	Ends   int   // where the body ends, if that is not at its size
	How    Ending
	Text   bool
	Slow   bool
	Hints  int // interim responses
	Sum    bool
	Takes  Taking
}

// Ending is how the response ends.
type Ending int

// The endings.
const (
	Whole   Ending = iota
	Early          // it ends too soon, as if it were whole
	Breaks         // it ends with an error
	Panics         // its reader panics
	Refuses        // there is no answer
	Crashes        // the source panics
	endings
)

// Taking is what is read of the request's body.
type Taking int

// How the server reads the body.
const (
	TakesNone   Taking = iota
	TakesAll           // before it answers
	TakesSome          // before it answers
	TakesBeside        // while it answers
	takings
)

// Scripts are the seeds of scripts: from 0 up to it.
const Scripts = 1 << 20

// ScriptOf returns the script for a number.
func ScriptOf(seed uint64) Script {
	r := rand.New(rand.NewPCG(seed, 7))
	s := Script{Seed: seed, Status: 200, Size: []int{0, 1, 100, 3000, 20_000, 70_000, 200_000}[r.IntN(7)], Length: -1}
	s.Slow, s.Sum, s.Takes = s.Size <= 3000 && r.IntN(2) == 0, r.IntN(4) == 0, Taking(r.IntN(int(takings)))
	if r.IntN(4) == 0 {
		s.Hints = 1 + r.IntN(2)
	}
	if r.IntN(2) == 0 {
		s.Length = int64(s.Size)
	}
	s.Ends = s.Size
	if r.IntN(3) == 0 {
		s.How = 1 + Ending(r.IntN(int(endings)-1))
		s.Ends = r.IntN(s.Size + 1)
		if s.How == Early && s.Length < 0 {
			s.Size = s.Ends
		}
	}
	switch r.IntN(12) {
	case 0:
		s.Status = 204
	case 1:
		s.Status = 304
	case 2:
		if s.Text = s.How == Whole; s.Text {
			s.Length = int64(s.Size)
		}
	}
	return s
}

// Clean reports whether a response has to come whole where its client breaks no rule.
func (s *Script) Clean(head bool) bool {
	switch {
	case s.How == Refuses, s.How == Crashes: // a page of ours does
		return true
	case head, s.Status != 200, s.Length == 0: // the body is never read
		return true
	}
	return s.How == Whole || s.How == Early && s.Size == s.Ends
}

// Octet returns a byte of the response, or with the next number of the request.
func Octet(seed uint64, i int) byte { return byte(seed) + byte(i) + byte(i>>8)*7 }

// Octets fills p with those from at.
func Octets(p []byte, seed uint64, at int) {
	for i := range p {
		p[i] = Octet(seed, at+i)
	}
}

// UploadSize returns a length of a request's body that the server accepts as
// complete.
func UploadSize(seed uint64, hundreds int) int { return hundreds*100 + int(seed%100) }

// Respond does what the path says.
func (w *World) Respond(ex *exchange.Exchange) *exchange.Answer {
	seed, err := strconv.ParseUint(strings.TrimPrefix(ex.Request.Path, "/"), 10, 64)
	if err != nil {
		w.Fault("path %q", ex.Request.Path)
	}
	s := ScriptOf(seed)
	rs, r := &ex.Response, rand.New(rand.NewPCG(seed, 8))
	b := &scripted{World: w, Script: s, random: r, upload: ex.Request.Body, trailer: &rs.Trailer}
	w.takeOf(ex, b)
	for range s.Hints {
		var fields header.List
		fields.AddField("link", "</x>")
		ex.Inform(103, &fields)
	}
	switch s.How {
	case Refuses:
		b.Close()
		return exchange.Fail(exchange.UpstreamRefused, "the script says so")
	case Crashes:
		b.Close()
		w.panics.Add(1)
		panic("the script says so")
	}
	rs.Reset()
	rs.Status, rs.Length, rs.Body = s.Status, s.Length, b
	rs.Header.AddField("seed", strconv.FormatUint(seed, 10))
	if r.IntN(5) == 0 {
		rs.Header.Add(header.Priority, fmt.Sprintf("u=%d, i", r.IntN(8)))
	}
	if s.Text {
		rs.Text = make([]byte, s.Size)
		Octets(rs.Text, seed, 0)
	}
	return nil
}

// Describe returns "world".
func (w *World) Describe() string { return "world" }

// takeOf reads as much of the request's body as the script says.
func (w *World) takeOf(ex *exchange.Exchange, b *scripted) {
	body, length := ex.Request.Body, ex.Request.Length
	if body == nil {
		return
	}
	switch b.Takes {
	case TakesAll:
		w.readUpload(b.Seed, body, length, -1)
	case TakesSome:
		w.readUpload(b.Seed, body, length, b.random.IntN(30_000))
	case TakesBeside:
		b.beside.Go(func() { w.readUpload(b.Seed, body, length, -1) })
	}
}

// readUpload reads at most limit bytes of an upload, all if that is negative. It has to be what
// the client sends, and to end where that does.
func (w *World) readUpload(seed uint64, body exchange.Body, length int64, limit int) {
	p := make([]byte, 5000)
	for at := 0; limit < 0 || at < limit; {
		n, err := body.Read(p[:1+(at*13+7)%len(p)])
		for i := range n {
			if p[i] != Octet(seed+1, at+i) {
				w.Fault("upload %d: byte %d is another one", seed, at+i)
				return
			}
		}
		at += n
		if err == io.EOF && (length >= 0 && int64(at) != length || length < 0 && at%100 != int(seed%100)) {
			w.Fault("upload %d: ended after %d bytes, of %d", seed, at, length)
		}
		if err != nil {
			return
		}
	}
}

// scripted is the body of a response.
type scripted struct {
	*World
	Script
	random  *rand.Rand
	at      int
	upload  exchange.Body
	beside  sync.WaitGroup // what still reads the upload
	trailer *header.List
	closed  bool
}

// Read reads on as the script says.
func (b *scripted) Read(p []byte) (int, error) {
	if b.closed {
		b.Fault("response %d: read after it was closed", b.Seed)
	}
	runtime.Gosched()
	for round := b.round.Load(); b.Slow && b.round.Load() == round && !b.over.Load(); {
		Pause()
	}
	end := min(b.Ends, b.Size)
	n := min(len(p), end-b.at, 1+b.random.IntN(30_000))
	Octets(p[:n], b.Seed, b.at)
	b.at += n
	if b.at < end || n > 0 && (b.Slow || b.random.IntN(2) == 0) {
		return n, nil
	}
	switch b.How {
	case Breaks:
		return n, &exchange.Error{Reason: exchange.UpstreamReset, Err: errors.New("the script says so")}
	case Panics:
		b.panics.Add(1)
		panic("the script says so")
	}
	if b.Sum {
		b.trailer.AddField("sum", strconv.Itoa(b.at))
	}
	return n, io.EOF
}

// Ready says anything where that is true.
func (b *scripted) Ready() bool { return !b.Slow && b.random.IntN(2) == 0 }

// Close closes the request's body, as a finished response does.
func (b *scripted) Close() error {
	if !b.closed && b.upload != nil {
		b.upload.Close()
	}
	b.closed = true
	b.beside.Wait()
	return nil
}

// Got is what a client has got of a response.
type Got struct {
	Status string
	Body   []byte
	Sum    string // that of the trailers
	Ended  bool   // in order
}

// Check holds a response against its script, and returns what is wrong.
func (s *Script) Check(got *Got, head bool) error {
	bodiless := head || s.Status != 200
	switch {
	case strings.HasPrefix(got.Status, "5"):
		if s.How == Crashes || s.How == Panics || s.How == Refuses {
			return nil // its text is ours
		}
		return fmt.Errorf("status %s, want %d", got.Status, s.Status)
	case got.Ended && got.Status != strconv.Itoa(s.Status):
		return fmt.Errorf("status %s, want %d", got.Status, s.Status)
	case bodiless && len(got.Body) > 0:
		return fmt.Errorf("%d bytes where there is no body", len(got.Body))
	case got.Ended && !bodiless && (len(got.Body) != s.Size || !s.Clean(false)):
		return fmt.Errorf("ended in order with %d bytes of %d", len(got.Body), s.Size)
	case got.Ended && !bodiless && s.Sum && !s.Text && s.Length != 0 && got.Sum != strconv.Itoa(s.Size):
		return fmt.Errorf("the trailers say %q, want %d", got.Sum, s.Size)
	}
	want := make([]byte, len(got.Body))
	Octets(want, s.Seed, 0)
	if len(got.Body) > s.Size || !bytes.Equal(got.Body, want) {
		return fmt.Errorf("the %d bytes of the body are others", len(got.Body))
	}
	return nil
}
