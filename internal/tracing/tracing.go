// Package tracing makes and passes on the trace of a request (W3C Trace Context), and
// sends spans to a collector by OTLP over HTTP.
//
// Open returns the Tracer of settings. Its Filter goes behind the one that settles who
// the client is, and its Done among those that hear of finished exchanges. A span has
// the attributes of OpenTelemetry's conventions for HTTP servers. Only sampled requests
// cost more than the field: their span is written into a buffer of bounded size, which
// export.go sends in batches.
package tracing

import (
	"sync"

	"headgate/internal/exchange"
)

// Tracer traces requests. Its methods may be called by several goroutines at once.
type Tracer struct {
	reject  uint64 // of 2^56: new traces with less are not sampled
	scratch sync.Pool
	out     *exporter // nil sends nothing
}

// span is what a sampled request keeps until it is done.
type span struct {
	traceContext
	parent [8]byte
	remote bool // there is a parent
}

// spans is where sampled requests keep theirs.
var spans = exchange.NewSlot[span](false)

// Open returns the tracer of settings, which is kept from plan to plan while they are
// the same.
//
// Counts takes what becomes of spans; nil counts nothing.
func Open(c *Config, env exchange.Env, counts *Counts) *Tracer {
	return exchange.Keep(env, "tracing", *c, func() *Tracer {
		t := &Tracer{reject: 1 << 56 / 100 * uint64(100-c.Sample)}
		if c.Sample == 0 {
			t.reject = 1 << 56
		}
		t.scratch.New = func() any { b := make([]byte, 0, 2<<10); return &b }
		if c.Endpoint != "" {
			t.out = newExporter(c, env.Log)
			if counts != nil {
				t.out.counts = counts
			}
		}
		return t
	})
}

// Start starts sending spans.
func (t *Tracer) Start() {
	if t.out != nil {
		t.out.start()
	}
}

// Retire ends the sending. It does not wait: what is there is sent in the background, if
// the collector takes it soon. Counts.Wait waits for that.
func (t *Tracer) Retire() {
	if t.out != nil {
		t.out.end()
	}
}

// Filter returns the filter that gives each request its traceparent.
func (t *Tracer) Filter() exchange.Filter {
	return exchange.Filter{
		Name:    "tracing",
		Owned:   &exchange.Owned{Request: isContext},
		Request: t.request,
	}
}

func (t *Tracer) request(ex *exchange.Exchange) *exchange.Answer {
	t.Trace(ex)
	return nil
}

// Trace gives a request its traceparent. It is for requests that no route takes, which
// meet no filter.
func (t *Tracer) Trace(ex *exchange.Exchange) {
	list := &ex.Request.Header
	s := span{}
	if ex.Told.Trusted {
		s.traceContext, s.remote = received(ex)
	}
	if s.remote {
		s.parent = s.span
		list.DeleteFunc(isParent)
		newID(s.span[:])
	} else {
		s.traceContext = newTrace(t.reject)
		if hasContext(list) {
			list.DeleteFunc(isContext)
		}
	}
	value := ex.Text.End(s.append(ex.Text.Buffer()))
	list.AddKnown(0, traceparent, value)
	ex.TraceID = value[traceAt : traceAt+traceDigits]
	if t.out != nil && s.flags&flagSampled != 0 && !ex.Rehearsal {
		*spans.Reuse(ex) = s
	}
}

// Done is called with a finished exchange. It keeps nothing of it.
func (t *Tracer) Done(ex *exchange.Exchange) {
	if t.out == nil {
		return
	}
	s := spans.Get(ex)
	if s == nil {
		return
	}
	b := t.scratch.Get().(*[]byte)
	*b = appendSpan((*b)[:0], s, ex)
	t.out.add(*b)
	t.scratch.Put(b)
}
