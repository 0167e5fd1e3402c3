package redirects

import (
	"fmt"
	"regexp"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// Config is a list of rules. The first one that matches is used.
type Config []Rule

// Rule redirects paths that match a regular expression to another URL. The first rule of
// the list that matches is used; a route's list replaces its proxy's.
type Rule struct {
	// Regex is the RE2 expression. It is matched anywhere in the normalized path, which
	// begins with a slash and has no query. Use ^ and $ to match the ends.
	Regex string `json:"regex" label:"true" required:"true" max:"1024" expand:"no" example:"^/old/(.*)$"`
	// Target is where clients are redirected: a path, or a URL that begins with http://,
	// https:// or {scheme}://. $1 and ${name} are replaced by groups of the match, $$ by a
	// dollar sign, and {host}, {path}, {query} and the other variables of header values by
	// values of the request. The query of the request is kept, unless the target contains a
	// ?.
	Target string `json:"target" label:"true" required:"true" max:"2048" expand:"no" example:"/new/$1"`
	// Status is 301, 302, 303, 307 or 308. Browsers cache 301 and 308 for a long time;
	// after 307 and 308 they submit a form again, to the new URL.
	Status int `json:"status" label:"true" default:"302" min:"301" max:"308"`
}

// Off reports whether there is no rule, as in the empty list by which a route
// takes nothing over from its proxy.
func (c Config) Off() bool { return len(c) == 0 }

// Check reports problems of the rules, whose list is at at.
func (c Config) Check(at schema.Place) {
	for i := range c {
		c[i].check(at.Index(i).Called("redirect rule", c[i].Regex))
	}
}

func (r *Rule) check(at schema.Place) {
	switch r.Status {
	case 301, 302, 303, 307, 308:
	default:
		if !at.Field("status").Reported() {
			at.Field("status").Problemf("write 301, 302, 303, 307 or 308", "%d is not a redirect status", r.Status)
		}
	}
	expr, err := regexp.Compile(r.Regex)
	if err != nil {
		at.Field("regex").Problem("invalid regular expression: "+schema.RegexError(err), "write it in RE2 syntax, without look-around and backreferences")
		return
	}
	if at.Field("target").Reported() || at.Field("regex").Reported() {
		return
	}
	parsed, err := exchange.ParseReplacement(r.Target, expr)
	if err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; write ")
		at.Field("target").Problem(what, "write "+remedy)
		return
	}
	if what, remedy := schema.CheckFieldValue(r.Target); what != "" {
		at.Field("target").Problem(what, remedy)
		return
	}
	if _, f := newTarget(&parsed); f != nil {
		at.Field("target").Problem(f.what, f.remedy)
		return
	}
	if text, ok := parsed.Fixed(); ok && (r.Regex == "^"+text+"$" || r.Regex == "^"+regexp.QuoteMeta(text)+"$") {
		at.Field("target").Problem(fmt.Sprintf("%s is sent to itself", text), "write another target, or remove the rule")
	}
}
