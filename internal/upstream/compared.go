package upstream

import (
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/mirror"
)

// startPair starts the comparison of the responses to a request, if the mirror has one.
func (m *Mirror) startPair(ex *exchange.Exchange) *mirror.Pair {
	if m.settings.Compare == nil {
		return nil
	}
	return m.settings.Compare.Start(ex.Request.Method, ex.Request.Path, m.settings.MaxRequests)
}

// drop gives up the comparison of a copy that is not sent.
func (c *copied) drop() {
	if c.pair != nil {
		c.pair.Drop()
	}
}

// respond answers by the source. What passes of the response is compared.
func (m *Mirror) respond(ex *exchange.Exchange, pair *mirror.Pair) *exchange.Answer {
	if pair == nil {
		return m.of.Respond(ex)
	}
	began := exchange.Now()
	answer, returned := (*exchange.Answer)(nil), false
	defer func() {
		if !returned { // a panic
			pair.Servers.End(false)
		}
	}()
	answer = m.of.Respond(ex)
	returned = true
	rs := &ex.Response
	switch {
	case answer != nil:
		pair.Servers.End(true)
	case rs.Tunnel != nil:
		pair.Servers.End(false)
	default:
		observeHead(&pair.Servers, rs, began)
		if rs.Body != nil && len(rs.Text) == 0 {
			rs.Body = &comparedBody{Body: rs.Body, seen: &pair.Servers}
		}
	}
	return answer
}

// observeHead notes the head of a response, and its body if that is at hand. seen may be nil.
func observeHead(seen *mirror.Answer, rs *exchange.Response, began int64) {
	if seen == nil {
		return
	}
	seen.Head(rs.Status, &rs.Header, time.Duration(exchange.Now()-began))
	if rs.Body == nil || len(rs.Text) > 0 {
		seen.Write(rs.Text)
		seen.End(true)
	}
}

// comparedBody is the body of a response that is hashed as it passes. It is read like any
// other: not spliced, and never held.
type comparedBody struct {
	exchange.Body
	seen *mirror.Answer
}

// Read reads from the body.
func (b *comparedBody) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	b.seen.Write(p[:n])
	if err != nil {
		b.seen.End(err == io.EOF)
	}
	return n, err
}

// Close ends the comparison too: a body that was not read to its end is incomplete.
func (b *comparedBody) Close() error {
	b.seen.End(false)
	return b.Body.Close()
}
