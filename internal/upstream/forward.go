package upstream

import (
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// Style is the form of the headers with information about the client.
type Style uint8

// The styles of the forwarded fields.
const (
	// Compat writes forwarded with commas between its parts, as the service
	// that headgate replaces does, and the x-forwarded fields.
	Compat Style = iota
	// RFC7239 writes Forwarded as RFC 7239 says, and the x-forwarded fields.
	RFC7239
	// Off writes neither.
	Off
)

// Forward returns the filter that adds the five fields every server gets:
// forwarded, x-forwarded-for, x-forwarded-proto, x-forwarded-host and via. The
// client's own claims are gone by then, hop-by-hop fields as well, so nothing a
// client sends can change or remove what is added here. viaRFC writes Via as
// RFC 9110, section 7.6.3 says instead of the fixed token.
func Forward(style Style, viaRFC bool) exchange.Filter {
	return exchange.Filter{
		Name: "forwarded",
		Request: func(ex *exchange.Exchange) *exchange.Answer {
			if loops(&ex.Request.Header) {
				return loop
			}
			if ex.Request.Header.Has(header.MaxForwards) {
				if answer := lastHop(ex); answer != nil {
					return answer
				}
			}
			forward(ex, style, viaRFC)
			return nil
		},
	}
}

// maxRounds limits how often a request may have passed a headgate. Longer chains do not
// exist; a server whose address is headgate itself is a loop.
const maxRounds = 8

var loop = &exchange.Answer{Reason: exchange.Loop, Cause: "the request has passed headgate " + strconv.Itoa(maxRounds) + " times: a server's address leads back to it"}

// loops reports whether Via says that a request goes in a circle (RFC 9110,
// section 7.6.3).
func loops(h *header.List) bool {
	if !h.Has(header.Via) {
		return false
	}
	rounds := 0
	for _, f := range h.All() {
		if f.ID != header.Via {
			continue
		}
		for entry := range strings.SplitSeq(f.Value, ",") {
			entry = strings.TrimSpace(entry)
			if entry == viaCompat || strings.HasSuffix(entry, " "+viaName) {
				rounds++
			}
		}
	}
	return rounds >= maxRounds
}

// The pseudonym in Via: a token alone, or after the protocol.
const viaCompat, viaName = "proxy", "headgate"

func forward(ex *exchange.Exchange, style Style, viaRFC bool) {
	rq := &ex.Request
	if style != Off {
		client := clientText(ex)
		b := ex.Text.Buffer()
		if style == RFC7239 {
			b = appendRFC7239(b, client, rq.Host, rq.Scheme)
		} else {
			b = appendCompat(b, client, rq.Host, rq.Scheme)
		}
		rq.Header.Add(header.Forwarded, ex.Text.End(b))
		rq.Header.Add(header.XForwardedFor, client)
		rq.Header.Add(header.XForwardedProto, rq.Scheme)
		if rq.Host != "" {
			rq.Header.Add(header.XForwardedHost, rq.Host)
		}
	}
	addVia(ex, viaRFC)
}

// clientText returns the client's address in text.
func clientText(ex *exchange.Exchange) string {
	if ex.ClientIP == ex.Conn.Remote.Addr().Unmap() || !ex.ClientIP.IsValid() {
		return ex.Conn.Peer
	}
	return ex.Text.End(ex.ClientIP.AppendTo(ex.Text.Buffer()))
}

// appendCompat writes the seed's shape: for=<client_ip>, host=<host>,
// proto=<scheme>. Only IPv6 addresses are quoted and bracketed.
func appendCompat(b []byte, client, host, scheme string) []byte {
	b = append(b, "for="...)
	b = appendNode(b, client)
	if host != "" { // HTTP/1.0 has none
		b = append(b, ", host="...)
		b = appendHost(b, host)
	}
	b = append(b, ", proto="...)
	return append(b, scheme...)
}

// appendHost writes a host without quotes. One that would end the part or start
// another is quoted, as an IPv6 address is.
func appendHost(b []byte, host string) []byte {
	for i := 0; i < len(host); i++ {
		switch host[i] {
		case '[', ';', '=', '(', ')':
			return appendQuoted(b, host)
		}
	}
	return append(b, host...)
}

// appendRFC7239 writes one forwarded-element (RFC 7239, section 4).
func appendRFC7239(b []byte, client, host, scheme string) []byte {
	b = append(b, "for="...)
	b = appendNode(b, client)
	if host != "" {
		b = append(b, ";host="...)
		if isToken(host) {
			b = append(b, host...)
		} else {
			b = appendQuoted(b, host)
		}
	}
	b = append(b, ";proto="...)
	return append(b, scheme...)
}

// appendNode writes an address: an IPv6 one in brackets and quotes (RFC 7239,
// section 6.1).
func appendNode(b []byte, client string) []byte {
	for i := 0; i < len(client); i++ {
		if client[i] == ':' {
			b = append(b, `"[`...)
			b = append(b, client...)
			return append(b, `]"`...)
		}
	}
	return append(b, client...)
}

// appendQuoted writes a quoted string. A checked host holds nothing that needs
// to be escaped.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// isToken reports whether a host needs no quotes: most names, and IPv4 addresses, without a
// port.
func isToken(host string) bool { return http1.ValidName(host) }

// addVia appends our token to what the client sent in Via.
func addVia(ex *exchange.Exchange, rfc bool) {
	h := &ex.Request.Header
	token := viaCompat
	if rfc {
		token = viaToken(ex.Request.Proto)
	}
	if !h.Has(header.Via) {
		h.Add(header.Via, token)
		return
	}
	// Lines of one field make one list (RFC 9110, section 5.3).
	b := ex.Text.Buffer()
	for _, f := range h.All() {
		if f.ID == header.Via && f.Value != "" {
			b = append(b, f.Value...)
			b = append(b, ", "...)
		}
	}
	h.Set(header.Via, ex.Text.End(append(b, token...)))
}

// viaToken is the protocol that the request came by, and our name.
func viaToken(p exchange.Proto) string {
	switch p {
	case exchange.HTTP10:
		return "1.0 " + viaName
	case exchange.HTTP2:
		return "2.0 " + viaName
	case exchange.HTTP3:
		return "3.0 " + viaName
	}
	return "1.1 " + viaName
}
