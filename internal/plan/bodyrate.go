package plan

import (
	"fmt"
	"time"

	"headgate/internal/exchange"
)

// pacedBody is a request body that ends with an error when its client sends it slower
// than min_body_rate. What counts is the time that was spent in waiting for the client:
// a server that takes its time does not make a client slow.
type pacedBody struct {
	exchange.Body
	rate   int64         // bytes a second
	grace  time.Duration // may be waited in any case
	waited time.Duration
	taken  int64 // bytes
}

// paceBody holds the client of an exchange to the port's min_body_rate.
func (p *Port) paceBody(ex *exchange.Exchange) {
	if body := ex.Request.Body; body != nil && !ex.Request.Extended {
		ex.Request.Body = &pacedBody{Body: body, rate: p.minBodyRate, grace: p.front.Limits.BodyIdle}
	}
}

// Read reads from the client.
func (b *pacedBody) Read(p []byte) (int, error) {
	if b.Body.Ready() {
		n, err := b.Body.Read(p)
		b.taken += int64(n)
		return n, err
	}
	began := exchange.Now()
	n, err := b.Body.Read(p)
	b.waited += time.Duration(exchange.Now() - began)
	b.taken += int64(n)
	if err == nil && b.waited > b.grace+b.due() {
		return n, &exchange.Error{Reason: exchange.RequestTimeout, Err: fmt.Errorf("the request body comes slower than min_body_rate: %d bytes in %v", b.taken, b.waited.Round(time.Millisecond))}
	}
	return n, err
}

// due returns the time that what came may take.
func (b *pacedBody) due() time.Duration {
	return time.Duration(float64(b.taken) / float64(b.rate) * float64(time.Second))
}

// Whole returns the body if all of it is at hand.
func (b *pacedBody) Whole() ([]byte, bool) {
	if w, ok := b.Body.(exchange.Whole); ok {
		return w.Whole()
	}
	return nil, false
}
