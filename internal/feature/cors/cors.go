// Package cors lets pages of other origins read responses: Cross-Origin Resource Sharing
// as the Fetch standard has it. It has two halves at two places of a route: CompileRequest
// answers preflight requests, which carry no sign-in, in front of whatever asks for one;
// CompileResponse tells browsers of every response, our own refusals too.
//
// An origin that is not allowed gets no field, and the browser keeps the response from
// the page. Requests are not refused: a server has to know what it lets others do.
package cors

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The fields of the Fetch standard.
const (
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	allowMethods     = "Access-Control-Allow-Methods"
	allowHeaders     = "Access-Control-Allow-Headers"
	exposeHeaders    = "Access-Control-Expose-Headers"
	maxAge           = "Access-Control-Max-Age"
	requestMethod    = "Access-Control-Request-Method"
	requestHeaders   = "Access-Control-Request-Headers"
	allowAll         = "Access-Control-Allow-"
)

// CompileRequest returns the filter that answers preflight requests.
func CompileRequest(c *Config, _ exchange.Env) (exchange.Filter, error) {
	return exchange.Filter{Name: "cors", Request: newPolicy(c).preflight}, nil
}

// CompileResponse returns the filter that tells browsers who may read a response.
func CompileResponse(c *Config, _ exchange.Env) (exchange.Filter, error) {
	p := newPolicy(c)
	return exchange.Filter{Name: "cors", Response: p.response, Owned: &exchange.Owned{Response: owns}}, nil
}

// policy is compiled settings. It is immutable.
type policy struct {
	any         bool            // every origin, without credentials
	exact       map[string]bool // origins
	wild        []wildcard
	credentials bool
	methods     string // as the field says them, "*" for all
	headers     string
	expose      string
	maxAge      string
}

// wildcard is an origin with any one label in front of its host: "https://" and
// ".example.com".
type wildcard struct{ before, after string }

func newPolicy(c *Config) *policy {
	p := &policy{
		exact: map[string]bool{}, credentials: c.AllowCredentials,
		methods: strings.Join(c.AllowMethods, ", "), headers: strings.Join(c.AllowHeaders, ", "), expose: strings.Join(c.ExposeHeaders, ", "),
		maxAge: strconv.Itoa(int(c.MaxAge.D().Seconds())),
	}
	if p.methods == "" {
		p.methods = "GET, HEAD, POST"
	}
	for _, origin := range c.AllowOrigins {
		if before, after, ok := strings.Cut(origin, "*."); ok {
			p.wild = append(p.wild, wildcard{before, "." + after})
			continue
		}
		p.any = p.any || origin == "*"
		p.exact[origin] = true
	}
	return p
}

// allows reports whether pages of an origin may read responses.
func (p *policy) allows(origin string) bool {
	if origin == "" || origin == "null" && !p.any {
		return false
	}
	if p.any || p.exact[origin] {
		return true
	}
	return slices.ContainsFunc(p.wild, func(w wildcard) bool {
		label, ok := strings.CutPrefix(origin, w.before)
		if !ok {
			return false
		}
		label, ok = strings.CutSuffix(label, w.after)
		return ok && label != "" && !strings.ContainsAny(label, "./:@")
	})
}

// preflight answers the question whether a request may be sent (Fetch, 3.3.2: OPTIONS
// with Origin and Access-Control-Request-Method). Other requests pass.
func (p *policy) preflight(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	if rq.Method != "OPTIONS" || !rq.Header.Has(header.Origin) {
		return nil
	}
	method, asks := rq.Header.Lookup(requestMethod)
	if !asks {
		return nil
	}
	a := &exchange.Answer{Reason: exchange.CORSPreflight, Status: 204}
	add := func(name, value string) {
		if value != "" {
			a.Fields = append(a.Fields, header.Field{Name: name, Value: value})
		}
	}
	a.Fields = append(a.Fields, header.Field{ID: header.Vary, Name: header.Vary.String(), Value: "Origin, " + requestMethod + ", " + requestHeaders})
	if !p.allows(rq.Header.Get(header.Origin)) {
		a.Cause = "the origin is not one of allow_origins"
		return a
	}
	// With credentials "*" would be the name of a method or field: what is asked for is
	// named then.
	methods, headers := p.methods, p.headers
	if p.credentials && methods == "*" {
		methods = method
	}
	if p.credentials && headers == "*" {
		headers, _ = rq.Header.Lookup(requestHeaders)
	}
	add(allowMethods, methods)
	add(allowHeaders, headers)
	add(maxAge, p.maxAge)
	return a
}

// response tells who may read a response. What a server says of it is dropped.
func (p *policy) response(ex *exchange.Exchange) {
	list := &ex.Response.Header
	preflight := ex.Reason == exchange.CORSPreflight
	list.DeleteFunc(func(f *header.Field) bool { return !preflight && owns(f) })
	if !p.any {
		list.VaryBy("Origin")
	}
	origin := ex.Request.Header.Get(header.Origin)
	if !p.allows(origin) {
		return
	}
	if p.any {
		origin = "*"
	}
	list.AddField(allowOrigin, origin)
	if p.credentials {
		list.AddField(allowCredentials, "true")
	}
	if p.expose != "" && !preflight {
		list.AddField(exposeHeaders, p.expose)
	}
}

// owns reports whether a field says who may read a response.
func owns(f *header.Field) bool {
	return f.ID == header.Other && len(f.Name) > len(allowAll) &&
		(header.EqualFold(f.Name[:len(allowAll)], allowAll) || f.Is(exposeHeaders) || f.Is(maxAge))
}
