// Package tohttps sends clients that come over plain HTTP to the HTTPS port of the
// same proxy. Which port that is, the plan says.
package tohttps

import (
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Name is the filter's name.
const Name = "redirect_http_to_https"

// challenges is where certificate authorities look for the answers to their
// challenges, by HTTP only (RFC 8555, section 8.3).
const challenges = "/.well-known/acme-challenge/"

// Compile returns the filter. Where env.SecurePorts has no number none is written,
// which stands for that of the scheme.
func Compile(_ *Config, env exchange.Env) (exchange.Filter, error) {
	suffixes := make(map[string]string, len(env.SecurePorts))
	for name, number := range env.SecurePorts {
		suffixes[name] = ":" + strconv.Itoa(number)
	}
	return exchange.Filter{Name: Name, Request: func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Scheme == "https" || strings.HasPrefix(ex.Request.Path, challenges) {
			return nil
		}
		return redirect(ex, suffixes[ex.Place.Port])
	}}, nil
}

func redirect(ex *exchange.Exchange, port string) *exchange.Answer {
	rq := &ex.Request
	host := nameOf(rq.Host)
	if host == "" {
		return exchange.Fail(exchange.BadRequest, "the request has no Host to send it to")
	}
	path := rq.Path
	if path == "*" {
		path = ""
	}
	// Only 307 and 308 keep the method (RFC 9110, section 15.4).
	status := 308
	if rq.Method == "GET" || rq.Method == "HEAD" {
		status = 301
	}
	url := ex.Text.Join("https://", host, port, path, rq.Query)
	return &exchange.Answer{
		Reason: exchange.Redirected, Status: status,
		Fields: []header.Field{{ID: header.Location, Name: header.Location.String(), Value: url}},
	}
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i]
	}
	return host
}
