// Package headers changes header fields as rules say: of requests behind the
// forwarded fields, of responses last of all.
//
// Whatever a variable or a group of an expression brings in, no rule can make a
// second field or line of it: the bytes that no field value has become blanks.
// Fields that decide how a message is read belong to no rule.
package headers

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

const (
	// longest is how long a value may become, in bytes.
	longest = 16 << 10
	// maxMatches is how often an expression may match in one value.
	maxMatches = 1000
)

// CompileRequest returns the filter of the rules for requests. One without rules has
// no func. Settings that were checked give no error.
func CompileRequest(c Config, _ exchange.Env) (exchange.Filter, error) {
	f := exchange.Filter{Name: "headers"}
	rules, err := compileRules(c, Request)
	if len(rules) > 0 {
		f.Request = rules.request
		f.Owned = &exchange.Owned{Request: rules.owns}
	}
	return f, err
}

// CompileResponse returns the filter of the rules for responses, as CompileRequest
// does for requests.
func CompileResponse(c Config, _ exchange.Env) (exchange.Filter, error) {
	f := exchange.Filter{Name: "response_headers"}
	rules, err := compileRules(c, Response)
	if len(rules) > 0 {
		f.Response = rules.response
		f.Owned = &exchange.Owned{Response: rules.decide}
	}
	return f, err
}

// compileRules compiles the rules of one direction.
func compileRules(c Config, direction Direction) (all rules, err error) {
	for i := range c {
		if c[i].Direction != direction {
			continue
		}
		r, err := compile(&c[i])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// rules are those of one direction. They are immutable.
type rules []rule

// rule is a compiled rule.
type rule struct {
	operation   Operation
	id          header.ID
	name        string
	value       exchange.Template
	fixed       string // the value, when it is the same for all requests
	varies      bool
	regex       *regexp.Regexp
	replacement exchange.Replacement
	pattern     bool // name has a *, and stands for more than one
	// twins says that a server may take fields with other names for this one.
	twins bool
	// certificate says that the value tells whose certificate the client showed.
	certificate bool
}

func compile(c *Rule) (r rule, err error) {
	r = rule{operation: c.Operation, id: header.Lookup(c.Name), name: c.Name, twins: c.Direction == Request && header.HasTwins(c.Name)}
	switch c.Operation {
	case Replace:
		if r.regex, err = regexp.Compile(c.Regex); err == nil {
			r.replacement, err = exchange.ParseReplacement(c.Value, r.regex)
		}
		r.certificate = slices.ContainsFunc(r.replacement.Parts(), func(p exchange.Part) bool { return isCertificate(p.Variable) })
		return r, err
	case Remove:
		r.pattern = strings.Contains(c.Name, "*")
		r.twins = r.twins && !r.pattern
		return r, nil
	}
	if r.value, err = exchange.ParseTemplate(c.Value); err != nil {
		return r, err
	}
	text, fixed := r.value.Fixed()
	r.fixed, r.varies = text, !fixed
	r.certificate = r.value.Has(isCertificate)
	return r, nil
}

// isCertificate reports whether a variable is about the client's certificate.
func isCertificate(variable string) bool { return strings.HasPrefix(variable, "client_cert_") }

// request changes the fields that a server gets.
func (rs rules) request(ex *exchange.Exchange) *exchange.Answer {
	list := &ex.Request.Header
	for i := range rs {
		r := &rs[i]
		if r.twins {
			list.DeleteTwins(r.name)
		}
		if r.certificate && ex.Conn.ClientFingerprint != "" {
			ex.Personal = true // the server knows who it answers
		}
		if !r.apply(ex, list) {
			return exchange.Fail(exchange.HeadTooLarge, "the header rule for "+r.name+" makes a value that is too long")
		}
	}
	return nil
}

// response changes the fields that the client gets. A field whose value would be
// too long is left out.
func (rs rules) response(ex *exchange.Exchange) {
	list := &ex.Response.Header
	for i := range rs {
		if r := &rs[i]; !r.apply(ex, list) {
			r.remove(list)
		}
	}
}

// owns reports whether a server may take a field for one that a rule is about.
func (rs rules) owns(f *header.Field) bool {
	for i := range rs {
		if r := &rs[i]; r.pattern && r.matches(f) || header.Twins(f.Name, r.name) {
			return true
		}
	}
	return false
}

// decide reports whether a rule leaves nothing of what a server says in a field:
// append and set_if_absent do.
func (rs rules) decide(f *header.Field) bool {
	for i := range rs {
		if r := &rs[i]; r.operation != Append && r.operation != SetIfAbsent && (f.Is(r.name) || r.pattern && r.matches(f)) {
			return true
		}
	}
	return false
}

// apply does what the rule says, and reports false when a value would be too
// long.
func (r *rule) apply(ex *exchange.Exchange, list *header.List) bool {
	switch r.operation {
	case Remove:
		r.remove(list)
		return true
	case Replace:
		return r.replace(ex, list)
	case SetIfAbsent:
		if _, there := list.Lookup(r.name); there {
			return true
		}
	}
	value, ok := r.made(ex)
	switch {
	case !ok:
		return false
	case value == "" && r.operation == Set:
		r.remove(list)
	case value == "":
	case r.operation == Set:
		list.SetKnown(r.id, r.name, value)
	case r.id == header.Cookie && list.Has(header.Cookie):
		addCookie(ex, list, value)
	default:
		list.AddKnown(r.id, r.name, value)
	}
	return true
}

// addCookie adds a pair to the Cookie field, of which a request has one (RFC 6265,
// section 5.4).
func addCookie(ex *exchange.Exchange, list *header.List, value string) {
	all := list.All()
	for i := range all {
		if f := &all[i]; f.ID == header.Cookie {
			f.Value = ex.Text.Join(f.Value, "; ", value)
			return
		}
	}
}

func (r *rule) remove(list *header.List) {
	if r.pattern {
		list.DeleteFunc(r.matches)
		return
	}
	if r.id != header.Other {
		list.Del(r.id)
	} else {
		list.DelField(r.name)
	}
}

// matches reports whether a field has a name for which the pattern stands, and rules may
// change it.
func (r *rule) matches(f *header.Field) bool {
	switch f.ID {
	case header.Host, header.ContentLength, header.TransferEncoding, header.Trailer, header.Expect:
		return false
	}
	return !f.ID.HopByHop() && matchName(r.name, f.Name)
}

// matchName reports whether a name matches a pattern in which * stands for any
// characters, without regard to case.
func matchName(pattern, name string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if len(name) < len(first) || !header.EqualFold(name[:len(first)], first) {
		return false
	}
	if name = name[len(first):]; !more {
		return name == ""
	}
	for {
		part, behind, more := strings.Cut(rest, "*")
		if !more {
			return len(name) >= len(part) && header.EqualFold(name[len(name)-len(part):], part)
		}
		at := 0
		for at+len(part) <= len(name) && !header.EqualFold(name[at:at+len(part)], part) {
			at++
		}
		if at+len(part) > len(name) {
			return false
		}
		name, rest = name[at+len(part):], behind
	}
}

// made returns the value for an exchange.
func (r *rule) made(ex *exchange.Exchange) (value string, ok bool) {
	if !r.varies {
		return r.fixed, true
	}
	b, ok := r.value.AppendLimited(ex.Text.Buffer(), ex, longest)
	if !ok {
		return "", false
	}
	return ex.Text.End(clean(b)), true
}

// replace changes every field with the rule's name.
func (r *rule) replace(ex *exchange.Exchange, list *header.List) (ok bool) {
	if r.id != header.Other && !list.Has(r.id) {
		return true
	}
	ok = true
	list.DeleteFunc(func(f *header.Field) bool {
		if f.ID != r.id || r.id == header.Other && !f.Is(r.name) || !r.regex.MatchString(f.Value) {
			return false
		}
		value, fits := r.replaced(ex, f.Value)
		f.Value, ok = value, ok && fits
		return value == ""
	})
	return ok
}

// replaced returns a value with every match replaced.
func (r *rule) replaced(ex *exchange.Exchange, value string) (made string, ok bool) {
	matches := r.regex.FindAllStringSubmatchIndex(value, maxMatches+1)
	if len(matches) > maxMatches {
		return "", false
	}
	b, from := ex.Text.Buffer(), 0
	for _, m := range matches {
		b = append(b, value[from:m[0]]...)
		if b, ok = r.replacement.Append(b, ex, value, m, longest); !ok {
			return "", false
		}
		from = m[1]
	}
	if b = append(b, value[from:]...); len(b) > longest {
		return "", false
	}
	return ex.Text.End(clean(b)), true
}

// clean makes blanks of the bytes that no field value has (RFC 9110, section
// 5.5), and takes those at the ends off.
func clean(b []byte) []byte {
	for i, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			b[i] = ' '
		}
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	from := 0
	for from < len(b) && blank(b[from]) {
		from++
	}
	return b[:copy(b, b[from:])]
}

func blank(c byte) bool { return c == ' ' || c == '\t' }
