package headers

import (
	"fmt"
	"regexp"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// Config is a list of rules, which are applied in order.
type Config []Rule

// Rule changes a header of requests on their way to servers, or of responses on their way
// to clients. Rules are applied in the order of the list; a route's list replaces its
// proxy's.
type Rule struct {
	// Direction is `request` for what servers get, or `response` for what clients get,
	// including responses of headgate itself.
	Direction Direction `json:"direction" label:"true" required:"true" enum:"request,response" example:"request"`
	// Operation is `set`, which leaves one header with this name and value; `append`, which
	// adds a header to existing ones; `remove`; `set_if_absent`, which keeps an existing
	// header; or `replace`, which replaces what regex matches by value, in every header
	// with this name.
	Operation Operation `json:"operation" label:"true" default:"set" enum:"set,append,remove,set_if_absent,replace"`
	// Name is the name of the header; case is ignored. In a remove, `*` matches any
	// characters: X-Debug-* is every header whose name begins so, *_* every one with an
	// underscore.
	Name string `json:"name" label:"true" required:"true" max:"256" example:"X-Real-IP"`
	// Value is the field's value; for replace, what each match becomes. The
	// variables {client_ip}, {host} (without its port), {authority} (with it), {scheme}, {method}, {path}, {query},
	// {request_uri} (path and query), {port} (of the authority, or the scheme's own), {server_port}
	// (that the request came in by), {header.NAME} (a field of the request),
	// {request_id}, {proxy}, {route}, {user}, {client_cert_subject} and
	// {client_cert_fingerprint} stand for what the request has, {status} and
	// {reason} for what the response has; `{{` is a brace.
	// In a replace, $1 stands for what a group matched, and $$ for a dollar sign.
	// A value that comes out empty leaves no field.
	//
	// A literal value of a field that carries credentials, by its name (Authorization,
	// Cookie, X-Api-Key), is not shown again; write ${VARIABLE} to keep it out of the
	// configuration.
	Value string `json:"value,omitempty" label:"true" max:"4096" secret:"maybe" example:"{client_ip}"`
	// Regex is the RE2 expression of a replace. It is matched anywhere in the value.
	Regex string `json:"regex,omitempty" label:"true" max:"1024" expand:"no" secret:"maybe" example:"^http://"`
	// Secret is whether value and regex are secrets, whatever the name is: the API, the
	// console and the audit log do not show them.
	Secret bool `json:"secret,omitempty" label:"true" default:"false"`
}

// Direction is the messages that a rule applies to.
type Direction string

// The directions.
const (
	Request  Direction = "request"
	Response Direction = "response"
)

// Operation is what a rule does with a header.
type Operation string

// The operations.
const (
	Set         Operation = "set"
	Append      Operation = "append"
	Remove      Operation = "remove"
	SetIfAbsent Operation = "set_if_absent"
	Replace     Operation = "replace"
)

// Off reports whether there is no rule, as in the empty list by which a route
// takes nothing over from its proxy.
func (c Config) Off() bool { return len(c) == 0 }

// Check reports problems of the rules, whose list is at at.
func (c Config) Check(at schema.Place) {
	for i := range c {
		c[i].check(at.Index(i).Called("header rule", c[i].Name))
	}
}

func (r *Rule) check(at schema.Place) {
	if what, remedy := checkName(r.Name); what != "" && !at.Field("name").Reported() {
		at.Field("name").Problem(what, remedy)
	}
	if r.Operation != Remove && strings.Contains(r.Name, "*") {
		at.Field("name").Problemf("write one name, or operation: remove", "* in a name is not valid with operation %s", r.Operation)
	}
	if r.Operation == Replace {
		r.checkReplace(at)
		return
	}
	if r.Regex != "" {
		at.Field("regex").Problemf("write operation: replace, or remove regex", "regex is not valid with operation %s", r.Operation)
	}
	value := at.Field("value")
	switch {
	case r.Operation == Remove && r.Value != "":
		value.Problem("a field that is removed has no value", "remove value, or write another operation")
	case r.Operation == Remove:
	case r.Value == "" && !value.Reported():
		value.Problem("missing", "add value, or write operation: remove")
	default:
		_, err := exchange.ParseTemplate(r.Value)
		checkValue(r.Value, err, value)
	}
}

func (r *Rule) checkReplace(at schema.Place) {
	if r.Regex == "" {
		if !at.Field("regex").Reported() {
			at.Field("regex").Problem("missing", "add regex, or write operation: set")
		}
		return
	}
	expr, err := regexp.Compile(r.Regex)
	if err != nil {
		at.Field("regex").Problem("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
		return
	}
	_, err = exchange.ParseReplacement(r.Value, expr)
	checkValue(r.Value, err, at.Field("value"))
}

// checkValue reports problems of a value, and of an error that parsing it
// gave.
func checkValue(value string, err error, at schema.Place) {
	if err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; write ")
		at.Problem(what, "write "+remedy)
	} else if what, remedy := schema.CheckFieldValue(value); what != "" {
		at.Problem(what, remedy)
	}
}

// checkName reports a name that is none, or that no rule may change: those fields
// are written anew from what was understood of a message, and changing them would
// let two readers find its end in different places.
func checkName(name string) (what, remedy string) {
	if strings.HasPrefix(name, ":") {
		return fmt.Sprintf("%s is not a header but a part of the request or status line", name), "remove the rule"
	}
	if !http1.ValidName(name) {
		return fmt.Sprintf("%q is not a header name", name), "write a name like X-Real-IP"
	}
	id := header.Lookup(name)
	if id == header.Other {
		id = header.Twin(name)
	}
	switch {
	case id == header.Host:
		return "rules cannot change the header Host", "set host_header on the proxy"
	case id == header.ContentLength || id == header.TransferEncoding || id == header.Trailer || id == header.Expect:
		return fmt.Sprintf("%s controls how a message is framed, rules cannot change it", name), "remove the rule"
	case id.HopByHop():
		return fmt.Sprintf("%s is a hop-by-hop header, rules cannot change it", name), "remove the rule"
	}
	return "", ""
}
