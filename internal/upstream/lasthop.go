package upstream

import (
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// Methods is what is said to be allowed by answers that are ours. Servers may know
// fewer, or more.
const Methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// maxHops is the longest Max-Forwards that is read, in digits.
const maxHops = 9

// lastHop counts Max-Forwards down, which says for TRACE and OPTIONS how many more
// proxies a request may pass, and returns the answer when it may pass none (RFC 9110,
// section 7.6.2). A value that is no number, and one of another method, passes as it
// is.
func lastHop(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	if rq.Method != "TRACE" && rq.Method != "OPTIONS" {
		return nil
	}
	text := rq.Header.Get(header.MaxForwards)
	hops := http1.ParseLength(text)
	switch {
	case hops < 0 || len(text) > maxHops:
		return nil
	case hops > 0:
		rq.Header.Set(header.MaxForwards, ex.Text.End(strconv.AppendInt(ex.Text.Buffer(), hops-1, 10)))
		return nil
	case rq.Method == "OPTIONS":
		return allowed
	}
	return &exchange.Answer{Reason: exchange.LastHop, Status: okStatus, ContentType: "message/http", Body: traced(rq)}
}

// allowed answers OPTIONS in the place of a server.
var allowed = &exchange.Answer{
	Reason: exchange.LastHop, Status: okStatus, Body: []byte{},
	Fields: []header.Field{{ID: header.Allow, Name: "Allow", Value: Methods}},
}

const okStatus = 200

// traced returns a request as it was received, without what only servers should see
// (RFC 9110, section 9.3.8).
func traced(rq *exchange.Request) []byte {
	b := http1.AppendRequestLine(nil, rq.Method, rq.Path+rq.Query)
	b = http1.AppendField(b, "Host", rq.Host)
	for _, f := range rq.Header.All() {
		switch f.ID {
		case header.Authorization, header.Cookie, header.ProxyAuthorization:
			continue
		}
		b = http1.AppendField(b, f.Name, f.Value)
	}
	return append(b, http1.CRLF...)
}
