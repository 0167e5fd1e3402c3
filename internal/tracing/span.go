package tracing

import (
	"encoding/hex"
	"net"
	"net/netip"
	"strconv"
	"unicode/utf8"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The longest texts in a span, in bytes. What is longer is cut.
const (
	maxText  = 256
	maxURL   = 2048
	maxState = 512
)

// Kinds and states of spans, as OTLP counts them.
const (
	kindServer  = 2
	statusError = 2
	// hasRemote and isRemote are the bits of a span's flags that tell that its parent
	// is another process's.
	hasRemote, isRemote = 1 << 8, 1 << 9
)

// appendSpan appends the span of an exchange as OTLP's JSON: ids are hexadecimal, and
// integers of 64 bits are strings.
func appendSpan(b []byte, s *span, ex *exchange.Exchange) []byte {
	rq := &ex.Request
	b = append(b, `{"traceId":"`...)
	b = hex.AppendEncode(b, s.trace[:])
	b = append(b, `","spanId":"`...)
	b = append(hex.AppendEncode(b, s.span[:]), '"')
	flags := int64(s.flags) | hasRemote
	if s.remote {
		flags |= isRemote
		b = append(b, `,"parentSpanId":"`...)
		b = append(hex.AppendEncode(b, s.parent[:]), '"')
		if state, there := rq.Header.Lookup(tracestate); there {
			b = appendText(append(b, `,"traceState":`...), state, maxState)
		}
	}
	b = strconv.AppendInt(append(b, `,"flags":`...), flags, 10)
	method, known := methodOf(rq.Method)
	name := method
	if !known {
		name = "HTTP"
	}
	if ex.Place.Route != "" {
		name = ex.Text.Join(name, " ", ex.Place.Route)
	}
	b = appendText(append(b, `,"name":`...), name, maxText)
	end := ex.Times.End
	if end == 0 {
		end = exchange.Now()
	}
	b = strconv.AppendInt(append(b, `,"kind":`...), kindServer, 10)
	b = strconv.AppendInt(append(b, `,"startTimeUnixNano":"`...), clock.At(ex.Times.Start).UnixNano(), 10)
	b = strconv.AppendInt(append(b, `","endTimeUnixNano":"`...), clock.At(end).UnixNano(), 10)
	b = append(b, `","attributes":[{"key":"http.request.method","value":{"stringValue":"`...)
	b = append(b, method...)
	b = append(b, `"}}`...)
	if !known && rq.Method != "" {
		b = text(b, "http.request.method_original", rq.Method, maxText)
	}
	b = appendRequest(b, ex)
	b = appendResult(b, ex)
	b = append(b, ']')
	if failed(ex) {
		b = strconv.AppendInt(append(b, `,"status":{"code":`...), statusError, 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// methodOf returns the method as attributes have it: unknown ones are
// one.
func methodOf(method string) (string, bool) {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE":
		return method, true
	}
	return "_OTHER", false
}

// appendRequest appends what a client asked, and who it is.
func appendRequest(b []byte, ex *exchange.Exchange) []byte {
	rq := &ex.Request
	b = text(b, "url.path", rq.Path, maxURL)
	if len(rq.Query) > 1 {
		b = text(b, "url.query", rq.Query[1:], maxURL)
	}
	b = text(b, "url.scheme", rq.Scheme, maxText)
	if ex.Place.Route != "" {
		b = text(b, "http.route", ex.Place.Route, maxText)
	}
	b = text(b, "network.protocol.version", versionOf(rq.Proto), maxText)
	if host := rq.HostName(); host != "" {
		b = text(b, "server.address", host, maxText)
		b = number(b, "server.port", portOf(rq))
	}
	client := ex.ClientIP
	if !client.IsValid() {
		client = ex.Conn.Remote.Addr()
	}
	b = address(b, "client.address", client)
	b = address(b, "network.peer.address", ex.Conn.Remote.Addr())
	if port := ex.Conn.Remote.Port(); port > 0 {
		b = number(b, "network.peer.port", int64(port))
	}
	if agent := rq.Header.Get(header.UserAgent); agent != "" {
		b = text(b, "user_agent.original", agent, maxText)
	}
	return b
}

// appendResult appends what came of the request.
func appendResult(b []byte, ex *exchange.Exchange) []byte {
	status := ex.Status()
	if status > 0 {
		b = number(b, "http.response.status_code", int64(status))
	}
	if failed(ex) {
		kind := ex.Reason.String()
		if kind == "" {
			kind = strconv.Itoa(status)
		}
		b = text(b, "error.type", kind, maxText)
	}
	b = number(b, "http.request.body.size", ex.Received)
	b = number(b, "http.response.body.size", ex.Sent)
	if ex.Place.Proxy != "" {
		b = text(b, "headgate.proxy", ex.Place.Proxy, maxText)
	}
	b = text(b, "headgate.request_id", ex.ID(), maxText)
	if ex.Reason != exchange.None {
		b = text(b, "headgate.reason", ex.Reason.String(), maxText)
	}
	if ex.Server != "" {
		b = text(b, "headgate.server", ex.Server, maxText)
		b = number(b, "headgate.attempts", int64(ex.Attempts))
	}
	return b
}

// failed reports whether the request failed on our side: what the client did wrong is
// no error of a server's span.
func failed(ex *exchange.Exchange) bool {
	return ex.Status() >= 500 || ex.Response.HeadSent && ex.Reason != exchange.None && !ex.Response.Ours && ex.Reason != exchange.ClientClosed
}

func versionOf(p exchange.Proto) string {
	switch p {
	case exchange.HTTP10:
		return "1.0"
	case exchange.HTTP11:
		return "1.1"
	case exchange.HTTP2:
		return "2"
	}
	return "3"
}

// portOf returns the port that the client asked for.
func portOf(rq *exchange.Request) int64 {
	if _, port, err := net.SplitHostPort(rq.Host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			return int64(n)
		}
	}
	if rq.Scheme == "https" {
		return 443
	}
	return 80
}

func text(b []byte, key, value string, limit int) []byte {
	b = append(b, `,{"key":"`...)
	b = append(b, key...)
	b = append(b, `","value":{"stringValue":`...)
	return append(appendText(b, value, limit), "}}"...)
}

func number(b []byte, key string, value int64) []byte {
	b = append(b, `,{"key":"`...)
	b = append(b, key...)
	b = append(b, `","value":{"intValue":"`...)
	return append(strconv.AppendInt(b, value, 10), `"}}`...)
}

func address(b []byte, key string, a netip.Addr) []byte {
	b = append(b, `,{"key":"`...)
	b = append(b, key...)
	b = append(b, `","value":{"stringValue":"`...)
	return append(a.Unmap().WithZone("").AppendTo(b), `"}}`...)
}

// appendText appends a JSON string of at most limit bytes of s.
func appendText(b []byte, s string, limit int) []byte {
	const digits = "0123456789abcdef"
	if len(s) > limit {
		s = s[:limit]
		for r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 && len(s) > limit-utf8.UTFMax; r, size = utf8.DecodeLastRuneInString(s) {
			s = s[:len(s)-1]
		}
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r < ' ' || r == '"' || r == '\\' || r == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, digits[r>>4], digits[r&15])
		default:
			b = utf8.AppendRune(b, r) // what is no UTF-8 is U+FFFD
		}
	}
	return append(b, '"')
}
