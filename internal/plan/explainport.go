package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// portFor finds the port by the number in the URL.
func (p *Plan) portFor(q Question, e *Explanation) *Port {
	number, named := portNumber(q)
	var others []string
	var fallback *Port
	for _, port := range p.tcpFirst() {
		if port.scheme() != q.Scheme || q.HTTP3 && port.Protocol() != config.HTTP3 {
			continue
		}
		if int(port.Address().Port()) == number {
			if nodes := p.config.Ports[port.Name()].Nodes; len(nodes) > 0 {
				e.Notes = append(e.Notes, "port "+port.Name()+" is only on "+strings.Join(nodes, ", "))
			}
			return port
		}
		others = append(others, fmt.Sprintf("%s on %v", port.Name(), port.Address()))
		if fallback == nil || port.Address().Addr().IsUnspecified() && !fallback.Address().Addr().IsUnspecified() {
			fallback = port
		}
	}
	protocol := q.Scheme
	if q.HTTP3 {
		protocol = "HTTP/3"
	}
	note := fmt.Sprintf("no active port listens on %d for %s", number, protocol)
	switch {
	case fallback == nil:
		note = "no active port speaks " + protocol
	case named:
		note += "; active are " + strings.Join(others[:min(len(others), 10)], ", ")
		fallback = nil
	default:
		note += "; evaluated as if it arrived at port " + fallback.Name()
	}
	e.Notes = append(e.Notes, note+p.elsewhere(number, q.HTTP3))
	return fallback
}

// elsewhere says which port or proxy other nodes have with a port number, "" if they have none.
func (p *Plan) elsewhere(number int, udp bool) string {
	c := p.config
	for _, name := range slices.Sorted(maps.Keys(c.Ports)) {
		if port := c.Ports[name]; int(port.Address.Port()) == number && (port.Protocol == config.HTTP3) == udp && c.OnlyOn(port.Nodes) != "" {
			return "; port " + name + " is " + c.OnlyOn(port.Nodes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.TCPProxies)) {
		if t := c.TCPProxies[name]; !udp && t.Address.Has(uint16(number)) && c.OnlyOn(t.Nodes) != "" {
			return "; TCP proxy " + name + " is " + c.OnlyOn(t.Nodes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.UDPProxies)) {
		if u := c.UDPProxies[name]; udp && u.Address.Has(uint16(number)) && c.OnlyOn(u.Nodes) != "" {
			return "; UDP proxy " + name + " is " + c.OnlyOn(u.Nodes)
		}
	}
	return ""
}

// tcpFirst returns the ports by name, those that clients use without an announcement first.
func (p *Plan) tcpFirst() []*Port {
	return slices.SortedStableFunc(slices.Values(p.ports), func(a, b *Port) int {
		switch aQUIC, bQUIC := a.Protocol() == config.HTTP3, b.Protocol() == config.HTTP3; {
		case aQUIC && !bQUIC:
			return 1
		case bQUIC && !aQUIC:
			return -1
		}
		return 0
	})
}

// portNumber returns the port number of the URL, and whether it was written.
// The authority need not be valid: that is for the parser to say.
func portNumber(q Question) (number int, named bool) {
	i := strings.LastIndexByte(q.Authority, ':')
	if i >= 0 && !strings.HasSuffix(q.Authority, "]") {
		if number, err := strconv.Atoi(q.Authority[i+1:]); err == nil {
			return number, true
		}
	}
	if q.Scheme == "https" {
		return 443, false
	}
	return 80, false
}

// scheme returns the scheme of URLs that lead to the port.
func (p *Port) scheme() string {
	if p.Protocol() == config.HTTP {
		return "http"
	}
	return "https"
}

// read makes an exchange of a question, by the parser and the limits that real
// requests meet.
func (p *Port) read(q Question) (*exchange.Exchange, *exchange.Answer) {
	if !q.From.IsValid() {
		q.From = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	b := http1.AppendRequestLine(nil, q.Method, q.Target)
	b = http1.AppendField(b, "Host", q.Authority)
	for _, f := range q.Fields {
		b = http1.AppendField(b, f[0], f[1])
	}
	b = append(b, http1.CRLF...)
	limits := http1.Limits{HeadSize: p.front.HeadSize, Fields: p.front.HeadFields, URISize: p.front.URISize, StrictTarget: p.front.StrictTarget}
	var head http1.RequestHead
	n, err := http1.ParseRequest(b, &limits, &head)
	switch {
	case err != nil:
		return nil, refusal(err)
	case n != len(b):
		return nil, exchange.Fail(exchange.BadRequest, "the request is more than one head")
	}
	ex := &exchange.Exchange{}
	remote := netip.AddrPortFrom(q.From.Unmap().WithZone(""), 0)
	conn := &exchange.Conn{Remote: remote, Peer: remote.Addr().String(), Scheme: p.scheme()}
	ex.Reset(conn, nil)
	ex.Locator = p.locator
	ex.Rehearsal, ex.Times.Start = true, exchange.Now()
	ex.Place, ex.Limits, ex.ClientIP = p.front.Place, p.front.Limits, remote.Addr()
	fill(ex, &head, conn.Scheme)
	return ex, nil
}

// fill makes the request of an exchange from a head as the fronts do.
func fill(ex *exchange.Exchange, head *http1.RequestHead, scheme string) {
	rq := &ex.Request
	rq.Method, rq.Scheme, rq.Host, rq.Proto = head.Method, scheme, head.Authority, exchange.HTTP11
	rq.Path, rq.Query, rq.Upgrade = head.Path, head.Query, head.Upgrade
	if head.NonASCII {
		ex.EncodeTarget()
	}
	head.Fields.CopyTo(&rq.Header)
	rq.AcceptsTrailers = rq.Header.HasToken(header.TE, "trailers")
	http1.StripHopByHop(&rq.Header)
	rq.Header.Del(header.Host)
	rq.Header.Del(header.ContentLength)
	rq.Header.Del(header.Expect)
	if head.Framing != http1.NoBody {
		rq.Length, rq.Continue = head.ContentLength, head.ExpectContinue
	}
}

// refusal returns the answer to a head that breaks a rule: that of the first
// reason with its status.
func refusal(err error) *exchange.Answer {
	rule, ok := err.(http1.Error)
	for _, reason := range exchange.Reasons() {
		if ok && reason.Status() == rule.Status() {
			return exchange.Fail(reason, err.Error())
		}
	}
	return exchange.Fail(exchange.BadRequest, err.Error())
}
