// Package redirects redirects clients to another URL if a regular expression matches the
// path. target.go validates the positions of the parts of a target, expand.go inserts
// values.
//
// Clients cannot choose the host of the target, and a redirect to the same URL is skipped,
// so that a rule that matches its own target ends after one step.
package redirects

import (
	"regexp"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Name is the filter's name.
const Name = "redirects"

// Compile returns the filter of the rules. Settings that were checked give no
// error.
func Compile(c Config, _ exchange.Env) (exchange.Filter, error) {
	rules := make(rules, len(c))
	for i := range c {
		expr, err := regexp.Compile(c[i].Regex)
		if err != nil {
			return exchange.Filter{}, err
		}
		parsed, err := exchange.ParseReplacement(c[i].Target, expr)
		if err != nil {
			return exchange.Filter{}, err
		}
		t, f := newTarget(&parsed)
		if f != nil {
			return exchange.Filter{}, f
		}
		rules[i] = rule{regex: expr, target: t, status: c[i].Status}
	}
	return exchange.Filter{Name: Name, Request: rules.request}, nil
}

// Error returns what is wrong with the target.
func (f *fault) Error() string { return f.what }

// rules are compiled. They are immutable.
type rules []rule

type rule struct {
	regex  *regexp.Regexp
	target *target
	status int
}

// request answers with the first rule that matches.
func (rs rules) request(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	if rq.Path == "*" {
		return nil
	}
	for i := range rs {
		r := &rs[i]
		match := r.regex.FindStringSubmatchIndex(rq.Path)
		if match == nil {
			continue
		}
		b, what := r.target.append(ex.Text.Buffer(), ex, match)
		switch what {
		case "":
		case tooLong:
			return exchange.Fail(exchange.URITooLong, what)
		default:
			return exchange.Fail(exchange.BadRequest, what)
		}
		if isHere(string(b), rq) {
			continue
		}
		url := ex.Text.End(append(b, r.target.fragment...))
		return &exchange.Answer{
			Reason: exchange.Redirected, Status: r.status,
			Fields: []header.Field{{ID: header.Location, Name: header.Location.String(), Value: url}},
		}
	}
	return nil
}

// isHere reports whether a URL is that of the request.
func isHere(url string, rq *exchange.Request) bool {
	if from := strings.Index(url, "://"); from > 0 && url[0] != '/' {
		if !header.EqualFold(url[:from], rq.Scheme) {
			return false
		}
		url = url[from+len("://"):]
		end := strings.IndexAny(url, "/?")
		if end < 0 {
			end = len(url)
		}
		port := ":80"
		if rq.Scheme == "https" {
			port = ":443"
		}
		if !header.EqualFold(strings.TrimSuffix(url[:end], port), strings.TrimSuffix(rq.Host, port)) {
			return false
		}
		url = url[end:]
	}
	path, query := url, ""
	if i := strings.IndexByte(url, '?'); i >= 0 {
		path, query = url[:i], url[i:]
	}
	if path == "" {
		path = "/"
	}
	return path == rq.Path && query == rq.Query
}
