package plan

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/uri"
	"headgate/internal/upstream"
)

// serve takes an exchange whose head was read, to its end.
func (p *Port) serve(ex *exchange.Exchange) {
	if p.locator != nil {
		ex.Locator = p.locator
	}
	if p.challenges != nil && p.challenges.Pending() {
		if answer := p.answerChallenge(ex); answer != nil {
			p.refuse(ex, answer)
			return
		}
	}
	r, answer := p.selectRoute(ex)
	if answer == strangeToken {
		answer = p.answerStrange(ex.Request.Path)
	}
	if answer != nil {
		p.refuse(ex, answer)
		return
	}
	if p.minBodyRate > 0 {
		p.paceBody(ex)
	}
	r.pipeline.Serve(ex)
}

// selectRoute finds the route of an exchange and gives the exchange to it. With an answer
// that says the path is ambiguous, the route is that which would have taken it.
func (p *Port) selectRoute(ex *exchange.Exchange) (*Route, *exchange.Answer) {
	if answer := normalise(ex); answer != nil {
		return nil, answer
	}
	host := hostName(ex.Request.Host, &ex.Text)
	if p.tls != nil && !p.tls.covers(ex.Conn.ServerName, host) {
		return nil, misdirected
	}
	if p.streams != nil && p.streams.reserves(host) {
		return nil, passedThrough
	}
	if p.strange(host, ex.Request.Path) {
		return nil, strangeToken
	}
	r := p.hosts.route(ex, host, ex.Request.Path)
	if r == nil {
		return nil, noRoute
	}
	if ex.Request.Method == "TRACE" && !r.settings.AllowTrace {
		return r, traceRefused
	}
	if answer := p.hosts.ambiguous(ex, host, ex.Request.Path, r); answer != nil {
		return r, answer
	}
	ex.Place = &r.place
	ex.Limits.ConnectTimeout = r.connect
	return r, nil
}

// refuse answers an exchange that no route takes.
func (p *Port) refuse(ex *exchange.Exchange, answer *exchange.Answer) {
	if p.banned != nil {
		answer = p.banned(ex, answer)
	}
	if p.tracer != nil {
		p.tracer.Trace(ex)
	}
	p.outside.Refuse(ex, answer)
}

// noRoute is the response to a request whose host or path no route has.
var noRoute = exchange.Fail(exchange.NoRoute, "no route has this host and path")

// traceRefused is the response to TRACE, which would show a client what a server gets (RFC
// 9110, sections 9.3.8 and 15.5.6). Unknown methods are forwarded.
var traceRefused = &exchange.Answer{
	Reason: exchange.MethodRefused, Cause: "TRACE is not allowed on the route",
	Fields: []header.Field{{ID: header.Allow, Name: "Allow", Value: upstream.Methods}},
}

// misdirected is what a request gets whose host the connection was not opened
// for, so that another certificate belongs to it (RFC 9110, section 15.5.20).
var misdirected = exchange.Fail(exchange.Misdirected, "the host has another certificate than the name of the TLS handshake")

// passedThrough is the response to a request whose host belongs to a TCP proxy: clients that
// came by another name, under a certificate that has both, then open a connection for it.
var passedThrough = exchange.Fail(exchange.Misdirected, "connections for the host are forwarded by a TCP proxy")

// normalise brings host and path into their one form: that is matched, and that is
// sent. The query is never touched.
func normalise(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	if strings.IndexByte(rq.Host, '%') >= 0 {
		rq.Host = ex.Text.End(http1.AppendDecoded(ex.Text.Buffer(), rq.Host))
	}
	if !uri.Normal(rq.Path) && (rq.Path != "*" || rq.Method != "OPTIONS") {
		b, err := uri.AppendNormal(ex.Text.Buffer(), rq.Path)
		if err != nil {
			return exchange.Fail(exchange.BadRequest, err.Error())
		}
		rq.Path = ex.Text.End(b)
	}
	rq.Target = rq.Path
	return nil
}
