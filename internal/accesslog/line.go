package accesslog

import (
	"crypto/tls"
	"strconv"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The maximum length of text from a client or server in a record, in bytes.
// Longer text ends in "…".
const (
	maxMethod  = 64
	maxHost    = 512
	maxTarget  = 4096
	maxAgent   = 1024
	maxReferer = 2048
	maxUser    = 256
	maxCause   = 1024
	maxName    = 2048
)

// appendLocation appends where the client is, as far as it is known.
func appendLocation(b []byte, ex *exchange.Exchange) []byte {
	b = appendOptional(b, `,"country":`, ex.Country(), maxName)
	if n := ex.ASN(); n > 0 {
		b = strconv.AppendUint(append(b, `,"asn":`...), uint64(n), 10)
	}
	return b
}

// appendRecord appends the line of an exchange as a JSON object. Fields that do
// not apply, such as the server of a fixed response, are left out.
func (o *choice) appendRecord(b []byte, ex *exchange.Exchange, c *clock) []byte {
	rq := &ex.Request
	b = append(b, `{"time":"`...)
	b = c.appendISO(b, ex.Times.Start)
	b = append(b, '"')
	if o.has(clientIP) {
		b = append(b, `,"client_ip":"`...)
		b = append(appendClient(b, ex), '"')
	}
	if o.has(peer) {
		b = appendText(append(b, `,"peer":`...), ex.Conn.Peer, maxName)
	}
	if port := ex.Conn.Remote.Port(); port > 0 && o.has(clientPort) {
		b = strconv.AppendInt(append(b, `,"client_port":`...), int64(port), 10)
	}
	if ex.Locator != nil && o.has(clientIP) {
		b = appendLocation(b, ex)
	}
	b = appendText(append(b, `,"method":`...), rq.Method, maxMethod)
	b = appendText(append(b, `,"scheme":`...), rq.Scheme, maxMethod)
	b = appendText(append(b, `,"host":`...), rq.Host, maxHost)
	b = appendText(append(b, `,"path":`...), rq.Path, maxTarget)
	if rq.Query != "" && o.has(query) {
		b = appendText(append(b, `,"query":`...), rq.Query[1:], maxTarget) // without its "?"
	}
	b = appendText(append(b, `,"proto":`...), rq.Proto.String(), maxMethod)
	if o.has(tlsOf) && ex.Conn.TLSVersion != 0 {
		b = appendText(append(b, `,"tls_version":`...), tls.VersionName(ex.Conn.TLSVersion), maxName)
		b = appendText(append(b, `,"tls_cipher":`...), ciphers()[ex.Conn.TLSCipher], maxName)
		if ex.Conn.ECH {
			b = append(b, `,"ech":true`...)
		}
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(ex.Status()), 10)
	b = appendOptional(b, `,"reason":`, ex.Reason.String(), maxName)
	if o.has(cause) {
		b = appendOptional(b, `,"cause":`, ex.Cause, maxCause)
	}
	b = appendPlace(b, ex)
	if o.has(user) {
		b = appendOptional(b, `,"user":`, ex.User, maxUser)
	}
	b = append(b, `,"request_id":"`...)
	b = append(b, ex.ID()...)
	b = append(b, '"')
	b = appendOptional(b, `,"trace_id":`, ex.TraceID, maxName)
	if o.has(userAgent) {
		b = appendOptional(b, `,"user_agent":`, rq.Header.Get(header.UserAgent), maxAgent)
	}
	if o.has(referer) {
		b = appendOptional(b, `,"referer":`, rq.Header.Get(header.Referer), maxReferer)
	}
	b = appendHeaders(b, `,"request_headers":`, o.request, &rq.Header)
	b = appendHeaders(b, `,"response_headers":`, o.response, &ex.Response.Header)
	b = strconv.AppendInt(append(b, `,"bytes_sent":`...), ex.Sent, 10)
	b = strconv.AppendInt(append(b, `,"bytes_received":`...), ex.Received, 10)
	b = appendTimes(b, &ex.Times)
	return append(b, "}\n"...)
}

// appendPlace appends where the request went.
func appendPlace(b []byte, ex *exchange.Exchange) []byte {
	b = appendOptional(b, `,"port":`, ex.Place.Port, maxName)
	b = appendOptional(b, `,"proxy":`, ex.Place.Proxy, maxName)
	b = appendOptional(b, `,"route":`, ex.Place.Route, maxName)
	b = appendOptional(b, `,"server":`, ex.Server, maxName)
	if ex.Attempts > 0 {
		b = strconv.AppendInt(append(b, `,"attempts":`...), int64(ex.Attempts), 10)
	}
	if ex.ServerStatus > 0 {
		b = strconv.AppendInt(append(b, `,"upstream_status":`...), int64(ex.ServerStatus), 10)
	}
	b = appendOptional(b, `,"cache":`, ex.Cache.Use.String(), maxName)
	return b
}

// appendTimes appends the length of the exchange and of its stages.
func appendTimes(b []byte, t *exchange.Times) []byte {
	end := t.End
	if end == 0 {
		end = exchange.Now()
	}
	b = appendMillis(append(b, `,"duration_ms":`...), end-t.Start)
	asked := max(t.Start, t.Tried)
	if t.Dialed > 0 && t.Connected > 0 {
		b = appendMillis(append(b, `,"connect_ms":`...), t.Connected-t.Dialed)
		asked = max(asked, t.Connected)
	}
	if t.Head > 0 {
		b = appendMillis(append(b, `,"upstream_head_ms":`...), t.Head-asked)
	}
	return b
}

// appendClient appends the client's address.
func appendClient(b []byte, ex *exchange.Exchange) []byte {
	if ex.ClientIP.IsValid() {
		return ex.ClientIP.Unmap().AppendTo(b)
	}
	return append(b, ex.Conn.Peer...)
}

func appendOptional(b []byte, name, value string, limit int) []byte {
	if value == "" {
		return b
	}
	return appendText(append(b, name...), value, limit)
}

// appendMillis appends nanoseconds as milliseconds with three decimals.
func appendMillis(b []byte, nanos int64) []byte {
	micros := max(0, nanos) / 1000
	b = strconv.AppendInt(b, micros/1000, 10)
	rest := micros % 1000
	return append(b, '.', '0'+byte(rest/100), '0'+byte(rest/10%10), '0'+byte(rest%10))
}

// appendCombined appends the line of an exchange in the combined form:
//
//	address - user [day/month/year:time zone] "request" status bytes "referer" "agent"
func appendCombined(b []byte, ex *exchange.Exchange, c *clock) []byte {
	rq := &ex.Request
	b = appendClient(b, ex)
	b = append(b, " - "...)
	b = appendWord(b, ex.User, maxUser)
	b = append(b, " ["...)
	b = c.appendCommon(b, ex.Times.Start)
	b = append(b, `] "`...)
	b = appendRequestLine(b, rq)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(ex.Status()), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, ex.Sent, 10)
	b = append(b, ` "`...)
	b = appendQuoted(b, orDash(rq.Header.Get(header.Referer)), maxReferer)
	b = append(b, `" "`...)
	b = appendQuoted(b, orDash(rq.Header.Get(header.UserAgent)), maxAgent)
	return append(b, "\"\n"...)
}

// appendRequestLine appends what was read of a request line: "-" if that is nothing.
func appendRequestLine(b []byte, rq *exchange.Request) []byte {
	if rq.Method == "" {
		return append(b, '-')
	}
	b = appendQuoted(b, rq.Method, maxMethod)
	if rq.Path == "" {
		return b
	}
	b = append(b, ' ')
	b = appendQuoted(b, rq.Path, maxTarget)
	b = appendQuoted(b, rq.Query, maxTarget)
	if rq.Proto == 0 {
		return b
	}
	return append(append(b, ' '), rq.Proto.String()...)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clock turns moments of exchange.Now into wall clock time and keeps the text
// of the last second. It is set again for each buffer, so that it follows a
// clock that was put right.
type clock struct {
	wall   int64 // Unix nanoseconds when exchange.Now was 0
	second int64
	length int
	text   [32]byte
}

// set reads the wall clock.
func (c *clock) set() {
	c.wall = time.Now().UnixNano() - exchange.Now()
	c.length = 0
}

// appendISO appends a moment as RFC 3339 in UTC with milliseconds.
func (c *clock) appendISO(b []byte, moment int64) []byte {
	at := c.wall + moment
	second := floorDiv(at, int64(time.Second))
	if c.length == 0 || c.second != second {
		c.second = second
		c.length = len(time.Unix(second, 0).UTC().AppendFormat(c.text[:0], "2006-01-02T15:04:05"))
	}
	b = append(b, c.text[:c.length]...)
	millis := (at - second*int64(time.Second)) / int64(time.Millisecond)
	return append(b, '.', '0'+byte(millis/100), '0'+byte(millis/10%10), '0'+byte(millis%10), 'Z')
}

// appendCommon appends a moment in the form of the common log format, in local
// time.
func (c *clock) appendCommon(b []byte, moment int64) []byte {
	second := floorDiv(c.wall+moment, int64(time.Second))
	if c.length == 0 || c.second != second {
		c.second = second
		c.length = len(time.Unix(second, 0).AppendFormat(c.text[:0], "02/Jan/2006:15:04:05 -0700"))
	}
	return append(b, c.text[:c.length]...)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ciphers are the names of cipher suites. tls.CipherSuiteName makes lists to find one.
var ciphers = sync.OnceValue(func() map[uint16]string {
	names := map[uint16]string{}
	for _, list := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, c := range list {
			names[c.ID] = c.Name
		}
	}
	return names
})
