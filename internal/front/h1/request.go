package h1

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// newExchange makes an exchange of the head that was parsed.
func (c *Conn) newExchange(w *work) {
	ex := &w.ex
	ex.Reset(&c.facts, c)
	ex.Times.Start = exchange.Now()
	c.port = c.front.Port()
	ex.Place = c.port.Place
	ex.Limits = c.port.Limits
	ex.ClientIP = c.facts.Remote.Addr()
	c.describe(w)

	rq := &ex.Request
	rq.Upgrade = w.head.Upgrade
	rq.AcceptsTrailers = rq.Header.HasToken(header.TE, "trailers") // RFC 9110, section 10.1.4
	http1.StripHopByHop(&rq.Header)
	rq.Header.DeleteFunc(framingField)
	w.keepAlive = w.head.KeepAlive && c.port.KeepAlive > 0 && !c.draining.Load()
	w.body.reset(c, w)
	if w.head.Framing != http1.NoBody {
		rq.Length = w.head.ContentLength
		rq.Continue = w.head.ExpectContinue
		rq.Body = &w.body
	}
}

// describe copies what was parsed of a request line, as far as it went, and the
// fields.
func (c *Conn) describe(w *work) {
	rq, head := &w.ex.Request, &w.head
	rq.Method = head.Method
	rq.Scheme = c.facts.Scheme
	rq.Host = head.Authority
	rq.Path = head.Path
	rq.Query = head.Query
	if head.NonASCII {
		w.ex.EncodeTarget()
	}
	rq.Proto = exchange.HTTP11
	switch {
	case !head.Versioned:
		rq.Proto = 0
	case head.Minor == 0:
		rq.Proto = exchange.HTTP10
	}
	// The lists change places: the memory of both is kept.
	rq.Header, head.Fields = head.Fields, rq.Header
}

// framingField reports fields that the exchange holds elsewhere.
func framingField(f *header.Field) bool {
	switch f.ID {
	case header.Host, header.ContentLength, header.Expect:
		return true
	}
	return false
}
