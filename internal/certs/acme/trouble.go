package acme

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/server/safedial"
	"headgate/internal/setting/shown"
)

// Trouble is why there is no certificate, for people.
type Trouble struct {
	// Code is a keyword, such as dns_missing or rate_limited.
	Code string `json:"code"`
	// Message describes the problem.
	Message string `json:"message"`
	// Hint is how to fix it, or what headgate does next.
	Hint string `json:"hint,omitempty"`
	// Problem is the problem document of the authority, if there is one.
	Problem *Problem `json:"problem,omitempty"`

	blocked   bool          // no order is worth trying before something changes
	theirs    bool          // the authority's own fault: another one may do better
	elsewhere bool          // another process has it
	checked   bool          // a challenge was tried and failed: rehearse before the next
	after     time.Duration // not before this time, if the authority says so
}

// Problem is a problem document of an authority (RFC 8555, section 6.7), with limited
// length.
type Problem struct {
	// Type is the kind, such as urn:ietf:params:acme:error:unauthorized.
	Type string `json:"type"`
	// Status is the HTTP status, 0 if it came with none.
	Status int `json:"status,omitempty"`
	// Detail is the authority's description.
	Detail string `json:"detail,omitempty"`
	// Name is the affected host, or "".
	Name string `json:"name,omitempty"`
	// Sub are the problems of single names.
	Sub []Problem `json:"subproblems,omitempty"`
}

// Error tells what is wrong and what to do.
func (t *Trouble) Error() string {
	if t.Hint == "" {
		return t.Message
	}
	return t.Message + "; " + t.Hint
}

// The bounds of what is kept of an authority's words.
const (
	maxDetail = 2048
	maxSub    = 20
)

// problemOf returns a problem document as it is kept.
func problemOf(p protocol.Problem) *Problem {
	out := &Problem{Type: cut(p.Type), Status: p.Status, Detail: cut(p.Detail)}
	if authz, ok := p.Resource.(protocol.Authorization); ok {
		out.Name = cut(authz.IdentifierValue())
	}
	for _, s := range p.Subproblems[:min(len(p.Subproblems), maxSub)] {
		out.Sub = append(out.Sub, Problem{Type: cut(s.Type), Status: s.Status, Detail: cut(s.Detail), Name: cut(s.Identifier.Value)})
	}
	return out
}

// cut bounds a text of others and takes control characters out, also those that turn text
// about.
func cut(s string) string { return shown.Line(s, maxDetail) }

// meaning is what one kind of problem means.
type meaning struct {
	code, message, hint      string
	blocked, theirs, checked bool
}

// meanings tell people what the kinds of problems mean (RFC 8555, section 6.7; RFC
// 9773, section 7.4). The authority's own words stand beside them.
var meanings = map[string]meaning{
	"accountDoesNotExist":     {code: "account_unknown", message: "the authority does not know our account", hint: "a new one is made at the next try"},
	"alreadyReplaced":         {code: "already_replaced", message: "the certificate has been renewed already", hint: "the next order does not name it"},
	"badCSR":                  {code: "bad_csr", message: "the authority refuses the request for the certificate", hint: "choose another key_type, or see its words", blocked: true},
	"badNonce":                {code: "bad_nonce", message: "the authority refused a request as repeated", hint: "it is sent again", theirs: true},
	"badPublicKey":            {code: "bad_key", message: "the authority refuses the kind of key", hint: "choose another key_type", blocked: true},
	"badSignatureAlgorithm":   {code: "bad_key", message: "the authority refuses the kind of signature", hint: "choose another directory"},
	"caa":                     {code: "caa", message: "a CAA record of the domain forbids this authority", hint: "add a CAA record that allows it, or use the authority that the record names", checked: true},
	"connection":              {code: "unreachable", message: "the authority could not connect to the host", hint: "let port 80 or 443 through from outside, in the firewall and the router, or use dns-01", checked: true},
	"dns":                     {code: "dns", message: "the authority found no answer in the DNS", hint: "check the records of the name; they may take time to spread", checked: true},
	"externalAccountRequired": {code: "eab_required", message: "the authority asks for an external account binding", hint: "add eab with the key_id and hmac_key from your account there", blocked: true},
	"incorrectResponse":       {code: "wrong_answer", message: "somebody else answered the challenge", hint: "look who serves the host's port 80 or 443 from outside: another server, a CDN or a router may stand in front", checked: true},
	"invalidContact":          {code: "bad_contact", message: "the authority refuses the email", hint: "write another email", blocked: true},
	"invalidProfile":          {code: "bad_profile", message: "the authority has no such profile", hint: "remove profile, or name one that the directory lists", blocked: true},
	"malformed":               {code: "malformed", message: "the authority could not read a request", hint: "please report this with the order's timeline"},
	"orderNotReady":           {code: "not_ready", message: "the authority has not finished checking", hint: "it is asked again"},
	"rateLimited":             {code: "rate_limited", message: "the authority's rate limit is reached", hint: "wait; until then another directory under fallbacks may help", theirs: true},
	"rejectedIdentifier":      {code: "rejected_name", message: "the authority gives no certificates for this name", hint: "use another name or another directory", blocked: true},
	"serverInternal":          {code: "authority_error", message: "the authority has an error of its own", hint: "it is asked again", theirs: true},
	"tls":                     {code: "tls", message: "the authority could not complete a TLS handshake with the host", hint: "let port 443 through to headgate unchanged, or use http-01", checked: true},
	"unauthorized":            {code: "unauthorized", message: "the authority got another answer than ours", hint: "look who serves the host from outside, in IPv4 and in IPv6: another server, a CDN or a router may stand in front", checked: true},
	"unsupportedContact":      {code: "bad_contact", message: "the authority refuses the email", hint: "write another email", blocked: true},
	"unsupportedIdentifier":   {code: "rejected_name", message: "the authority gives no certificates for this kind of name", hint: "addresses need a directory and profile that allow them", blocked: true},
	"userActionRequired":      {code: "action_required", message: "the authority asks the account's owner to do something", hint: "follow its words", blocked: true},
}

// troubleOf returns what an error of an order means.
func troubleOf(err error) *Trouble {
	var t *Trouble
	if errors.As(err, &t) {
		return t
	}
	var p protocol.Problem
	if errors.As(err, &p) && (p.Type != "" || p.Detail != "") {
		return fromProblem(p)
	}
	var dial *net.OpError
	var slow net.Error
	switch {
	case errors.Is(err, safedial.ErrRefused):
		return &Trouble{Code: "authority_refused", Message: cut("the directory is not asked: " + err.Error()), Hint: "name a directory at another address: those of the link and of cloud metadata are refused"}
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout():
		return &Trouble{Code: "authority_slow", Message: "the authority did not answer in time", Hint: "it is asked again", theirs: true}
	case errors.As(err, &dial):
		return &Trouble{Code: "authority_away", Message: cut("the directory cannot be reached: " + dial.Error()), Hint: "check that this machine reaches it: its address, the DNS, a firewall or a proxy on the way", theirs: true}
	}
	// The library tells of the kind only in words of its own.
	if _, what, found := strings.Cut(err.Error(), "response Content-Type is "); found {
		kind, _, _ := strings.Cut(what, " but ")
		return &Trouble{Code: "authority_error", Message: cut("the authority answered with " + kind + " in place of JSON"),
			Hint: "it is asked again; check that directory is the address of an ACME directory", theirs: true}
	}
	return &Trouble{Code: "authority_error", Message: cut(fmt.Sprintf("the authority's answer could not be used: %v", err)), Hint: "it is asked again", theirs: true}
}

func fromProblem(p protocol.Problem) *Trouble {
	kind := strings.TrimPrefix(p.Type, protocol.ProblemTypeNamespace)
	m, known := meanings[kind]
	if !known {
		m = meaning{code: "refused", message: "the authority refused"}
		if p.Status >= 500 {
			m = meanings["serverInternal"]
		}
	}
	if p.Status == 429 {
		m = meanings["rateLimited"]
	}
	t := &Trouble{Code: m.code, Message: m.message, Hint: m.hint, Problem: problemOf(p), blocked: m.blocked, theirs: m.theirs, checked: m.checked}
	if t.Problem.Name != "" {
		t.Message += " (" + t.Problem.Name + ")"
	}
	if m.theirs && m.code == "rate_limited" {
		t.after = time.Hour
	}
	return t
}

// detail returns the authority's own words.
func (t *Trouble) detail() string {
	if t.Problem == nil {
		return ""
	}
	return t.Problem.Detail
}
