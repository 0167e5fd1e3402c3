package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/server/safedial"
)

// The bounds of what waits to be sent, and for how long.
const (
	// maxBatch is the length of spans at which a batch is sent at once, and maxWaiting
	// at which spans are dropped.
	maxBatch   = 256 << 10
	maxWaiting = 4 << 20
	// flushDelay is how long a span waits for others.
	flushDelay = time.Second
	// sendTimeout is how long an attempt may take, and maxAttempts how many there are.
	sendTimeout = 10 * time.Second
	maxAttempts = 6
	// firstPause is the pause after the first try that failed; it doubles up to maxPause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// lastTry is for how long spans are sent after the end.
	lastTry = 3 * time.Second
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
)

// exporter sends spans.
type exporter struct {
	// Constant.
	url         string
	headers     []Header
	counts      *Counts
	before      []byte // what stands before the spans of a request
	log         *slog.Logger
	client      *http.Client
	delay, rest time.Duration // flushDelay and firstPause

	mu struct {
		sync.Mutex
		buf     []byte
		spans   int
		dropped int
		closed  bool
	}
	wake chan struct{} // there is a first span
	full chan struct{} // there are enough for a batch
	stop context.CancelFunc

	// Owned by run.
	last context.Context // ends lastTry after the exporter
}

// Counts are what became of spans, over all tracers that it is given to.
type Counts struct {
	// Sent were taken by the collector, Dropped came faster than it takes them, and
	// Lost were refused by it or could not be sent.
	Sent, Dropped, Lost atomic.Uint64

	sending sync.WaitGroup
}

// Wait waits until the tracers that were retired have sent their last spans or have
// given up, which takes a few seconds at most. No tracer begins meanwhile.
func (c *Counts) Wait() { c.sending.Wait() }

const after = `]}]}]}`

func newExporter(c *Config, log *slog.Logger) *exporter {
	b := []byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":`)
	b = appendText(b, c.ServiceName, maxText)
	b = append(b, `}}]},"scopeSpans":[{"scope":{"name":"headgate"},"spans":[`...)
	return &exporter{
		url: c.Endpoint, headers: c.Headers, counts: &Counts{}, before: b, log: log, client: safedial.Client(sendTimeout, nil), delay: flushDelay, rest: firstPause,
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
}

// add takes the span of a request. It keeps nothing of it.
func (e *exporter) add(span []byte) {
	e.mu.Lock()
	if e.mu.closed || len(e.mu.buf)+len(span) >= maxWaiting {
		e.mu.dropped++
		e.mu.Unlock()
		e.counts.Dropped.Add(1)
		return
	}
	if len(e.mu.buf) > 0 {
		e.mu.buf = append(e.mu.buf, ',')
	}
	e.mu.buf = append(e.mu.buf, span...)
	e.mu.spans++
	first, full := e.mu.spans == 1, len(e.mu.buf) >= maxBatch
	e.mu.Unlock()
	if first {
		notify(e.wake)
	}
	if full {
		notify(e.full)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// takeAll removes and returns all spans that wait, and how many were dropped since.
func (e *exporter) takeAll(empty []byte) (buf []byte, spans, dropped int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	buf, spans, dropped = e.mu.buf, e.mu.spans, e.mu.dropped
	e.mu.buf, e.mu.spans, e.mu.dropped = empty[:0], 0, 0
	return buf, spans, dropped
}

func (e *exporter) start() {
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	e.counts.sending.Go(func() { e.run(ctx) })
}

// end ends the sending: what waits is tried once more, in the background.
func (e *exporter) end() {
	e.mu.Lock()
	e.mu.closed = true
	e.mu.Unlock()
	if e.stop != nil {
		e.stop()
	}
}

// run sends batches until ctx ends, and the last one for a short time after it.
func (e *exporter) run(ctx context.Context) {
	defer e.client.CloseIdleConnections()
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTry, cancel) })()
	e.last = last
	var buf []byte
	for ctx.Err() == nil {
		select {
		case <-e.wake:
			e.gather(ctx)
		case <-ctx.Done():
		}
		buf = e.flush(ctx, buf)
	}
	e.flush(ctx, buf)
}

// gather waits for the spans of a batch.
func (e *exporter) gather(ctx context.Context) {
	timer := time.NewTimer(e.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.full:
	case <-ctx.Done():
	}
}

// flush sends what waits, and returns memory for what comes.
func (e *exporter) flush(ctx context.Context, empty []byte) []byte {
	buf, spans, dropped := e.takeAll(empty)
	if dropped > 0 {
		e.log.Warn("spans dropped: the collector is slower than they come", "endpoint", e.url, "spans", dropped)
	}
	if spans == 0 {
		return buf
	}
	body := make([]byte, 0, len(e.before)+len(buf)+len(after))
	body = append(append(append(body, e.before...), buf...), after...)
	if err := e.deliver(ctx, body); err == nil {
		e.counts.Sent.Add(uint64(spans))
	} else {
		e.counts.Lost.Add(uint64(spans))
		e.log.Warn("spans lost: the collector does not take them", "endpoint", e.url, "spans", spans, "error", err)
	}
	return buf
}

// refused is a failure that no other try mends.
type refused struct{ error }

// deliver sends a batch, again and again while it may succeed. Once ctx has ended there
// is one short try more.
func (e *exporter) deliver(ctx context.Context, body []byte) error {
	pause := e.rest
	for try := 1; ; try++ {
		ended := ctx.Err() != nil
		wait, err := e.send(body)
		if err == nil || ended || errors.As(err, new(refused)) || try >= maxAttempts {
			return err
		}
		if wait == 0 {
			wait = pause + rand.N(pause/2)
			pause = min(2*pause, maxPause)
		}
		timer := time.NewTimer(min(wait, maxPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// send tries once. It returns how long the collector wants to be left alone.
func (e *exporter) send(body []byte) (time.Duration, error) {
	// A try that is under way when ctx ends is not broken off at once: the collector may
	// have taken the spans, and would get them twice.
	rq, err := http.NewRequestWithContext(e.last, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, refused{err}
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("User-Agent", "headgate")
	for i := range e.headers {
		rq.Header.Add(e.headers[i].Name, e.headers[i].Value)
	}
	rs, err := e.client.Do(rq)
	if err != nil {
		return 0, err
	}
	defer rs.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
	switch rs.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(rs.Header.Get("Retry-After")), fmt.Errorf("status %d", rs.StatusCode)
	}
	if rs.StatusCode/100 != 2 {
		return 0, refused{fmt.Errorf("status %d", rs.StatusCode)}
	}
	if err == nil {
		e.partial(answer)
	}
	return 0, nil
}

// retryAfter reads how long to wait, in seconds or until a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 3600))*time.Second, maxPause)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// partial reports spans that the collector has rejected in a batch that it accepted.
func (e *exporter) partial(answer []byte) {
	var said struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a string, or a number
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return
	}
	if n := strings.Trim(string(said.PartialSuccess.RejectedSpans), `"`); n != "" && n != "0" {
		e.log.Warn("the collector refused spans", "endpoint", e.url, "spans", n, "error", said.PartialSuccess.ErrorMessage)
	}
}
