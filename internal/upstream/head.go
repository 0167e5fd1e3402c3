package upstream

import (
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/upstream/fcgi"
)

// AppendHead appends the request head that srv gets, byte for byte, to b. It is
// HTTP/1.1.
func AppendHead(b []byte, ex *exchange.Exchange, srv *Server, host HostField) []byte {
	rq := &ex.Request
	b = append(b, rq.Method...)
	b = append(b, ' ')
	b = AppendTarget(b, srv, rq)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, hostOf(rq, srv, host)...)
	b = append(b, "\r\n"...)
	for i := range rq.Header.All() {
		f := &rq.Header.All()[i]
		switch f.ID {
		case header.Host, header.ContentLength, header.Expect:
			continue
		}
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	b = appendFraming(b, rq)
	b = appendConnection(b, rq)
	return append(b, "\r\n"...)
}

// AppendShown appends the request head that srv gets as people read it: for FastCGI the
// parameters, one per line.
func AppendShown(b []byte, ex *exchange.Exchange, srv *Server, host HostField) []byte {
	if !srv.pool.fastCGI {
		return AppendHead(b, ex, srv, host)
	}
	pairs, _ := fcgi.Pairs(fcgi.AppendParams(nil, ex, hostOf(&ex.Request, srv, host)))
	for _, pair := range pairs {
		b = append(append(append(append(b, pair[0]...), '='), pair[1]...), "\r\n"...)
	}
	return b
}

// AppendTarget appends the path and query for srv: its base path, then the rest of the path
// that the route left. Without a rest it is the base path as it is written.
func AppendTarget(b []byte, srv *Server, rq *exchange.Request) []byte {
	switch {
	case rq.Path == "*":
		return append(b, '*')
	case rq.Target == "":
		b = append(b, srv.Base...)
	default:
		b = append(b, srv.base()...)
		if rq.Target[0] != '/' {
			b = append(b, '/')
		}
		b = append(b, rq.Target...)
	}
	return append(b, rq.Query...)
}

func hostOf(rq *exchange.Request, srv *Server, host HostField) string {
	switch {
	case host.Fixed != "":
		return host.Fixed
	case host.Upstream, rq.Host == "":
		return srv.Authority
	}
	return rq.Host
}

// appendFraming appends how the body ends. A request without a body never gets
// a transfer coding; the methods that usually have a body say that theirs is
// empty (RFC 9110, section 8.6).
func appendFraming(b []byte, rq *exchange.Request) []byte {
	switch {
	case rq.Length > 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, rq.Length, 10)
		b = append(b, "\r\n"...)
	case rq.Length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case rq.Method == "POST" || rq.Method == "PUT" || rq.Method == "PATCH":
		b = append(b, "Content-Length: 0\r\n"...)
	}
	if rq.Continue {
		b = append(b, "Expect: 100-continue\r\n"...)
	}
	return b
}

// appendConnection appends our own connection options: an upgrade that the
// client requested, and that trailers are accepted (RFC 9110, sections 7.8
// and 10.1.4).
func appendConnection(b []byte, rq *exchange.Request) []byte {
	switch {
	case rq.Upgrade != "":
		b = append(b, "Connection: upgrade\r\nUpgrade: "...)
		b = append(b, rq.Upgrade...)
		b = append(b, "\r\n"...)
	case rq.AcceptsTrailers:
		b = append(b, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	return b
}
