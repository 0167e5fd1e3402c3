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

// Error returns the problem and the hint.
func (t *Trouble) Error() string {
	if t.Hint == "" {
		return t.Message
	}
	return t.Message + "; " + t.Hint
}

// The limits of the authority's texts that are kept.
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

// cut shortens a text and removes control characters, including those that change the
// direction of text.
func cut(s string) string { return shown.Line(s, maxDetail) }

// meaning is what one kind of problem means.
type meaning struct {
	code, message, hint      string
	blocked, theirs, checked bool
}

// meanings explain the problem types (RFC 8555, section 6.7; RFC 9773, section 7.4). They
// are shown with the authority's own text.
var meanings = map[string]meaning{
	"accountDoesNotExist":     {code: "account_unknown", message: "the authority does not know the account", hint: "a new one is created at the next attempt"},
	"alreadyReplaced":         {code: "already_replaced", message: "the certificate has been renewed already", hint: "the next order will not refer to it"},
	"badCSR":                  {code: "bad_csr", message: "the authority rejected the certificate signing request", hint: "choose another key_type, or see the authority's message", blocked: true},
	"badNonce":                {code: "bad_nonce", message: "the authority rejected the nonce of a request", hint: "headgate will send it again", theirs: true},
	"badPublicKey":            {code: "bad_key", message: "the authority rejected the key type", hint: "choose another key_type", blocked: true},
	"badSignatureAlgorithm":   {code: "bad_key", message: "the authority rejected the signature algorithm", hint: "choose another directory"},
	"caa":                     {code: "caa", message: "a CAA record of the domain forbids this authority", hint: "add a CAA record that allows it, or use the authority that the record names", checked: true},
	"connection":              {code: "unreachable", message: "the authority could not connect to the host", hint: "allow port 80 or 443 from outside in the firewall and the router, or use dns-01", checked: true},
	"dns":                     {code: "dns", message: "the authority got no DNS response for the name", hint: "check the records of the name; changes can take time to propagate", checked: true},
	"externalAccountRequired": {code: "eab_required", message: "the authority requires an external account binding", hint: "add eab with the key_id and hmac_key of your account at the authority", blocked: true},
	"incorrectResponse":       {code: "wrong_answer", message: "another server answered the challenge", hint: "check which server responds on port 80 or 443 of the host from outside: it can be another server, a CDN or a router", checked: true},
	"invalidContact":          {code: "bad_contact", message: "the authority rejected the email address", hint: "set another email", blocked: true},
	"invalidProfile":          {code: "bad_profile", message: "the authority has no such profile", hint: "remove profile, or set one that the directory lists", blocked: true},
	"malformed":               {code: "malformed", message: "the authority could not parse a request", hint: "please report this with the timeline of the order"},
	"orderNotReady":           {code: "not_ready", message: "the authority has not finished validation", hint: "headgate will try again"},
	"rateLimited":             {code: "rate_limited", message: "the authority's rate limit is reached", hint: "wait; until then a directory in fallbacks can help", theirs: true},
	"rejectedIdentifier":      {code: "rejected_name", message: "the authority does not issue certificates for this name", hint: "use another name or another directory", blocked: true},
	"serverInternal":          {code: "authority_error", message: "the authority has an internal error", hint: "headgate will try again", theirs: true},
	"tls":                     {code: "tls", message: "the authority could not complete a TLS handshake with the host", hint: "forward port 443 to headgate without terminating TLS, or use http-01", checked: true},
	"unauthorized":            {code: "unauthorized", message: "the authority got a different response than headgate's", hint: "check which server responds for the host from outside, over IPv4 and IPv6: it can be another server, a CDN or a router", checked: true},
	"unsupportedContact":      {code: "bad_contact", message: "the authority rejected the email address", hint: "set another email", blocked: true},
	"unsupportedIdentifier":   {code: "rejected_name", message: "the authority does not issue certificates for this kind of name", hint: "IP addresses need a directory and profile that allow them", blocked: true},
	"userActionRequired":      {code: "action_required", message: "the authority requires an action of the account's owner", hint: "follow the authority's message", blocked: true},
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
		return &Trouble{Code: "authority_refused", Message: cut("no request was sent to the directory: " + err.Error()), Hint: "use a directory at another address: link-local addresses and those of cloud metadata are rejected"}
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout():
		return &Trouble{Code: "authority_slow", Message: "the authority did not respond in time", Hint: "headgate will try again", theirs: true}
	case errors.As(err, &dial):
		return &Trouble{Code: "authority_away", Message: cut("the directory cannot be reached: " + dial.Error()), Hint: "check that this machine reaches it: its address, the DNS, a firewall or a proxy on the way", theirs: true}
	}
	// the library has this error as text only
	if _, what, found := strings.Cut(err.Error(), "response Content-Type is "); found {
		kind, _, _ := strings.Cut(what, " but ")
		return &Trouble{Code: "authority_error", Message: cut("the authority responded with " + kind + " instead of JSON"),
			Hint: "headgate will try again; check that directory is the URL of an ACME directory", theirs: true}
	}
	return &Trouble{Code: "authority_error", Message: cut(fmt.Sprintf("the authority's response is invalid: %v", err)), Hint: "headgate will try again", theirs: true}
}

func fromProblem(p protocol.Problem) *Trouble {
	kind := strings.TrimPrefix(p.Type, protocol.ProblemTypeNamespace)
	m, known := meanings[kind]
	if !known {
		m = meaning{code: "refused", message: "the authority rejected the request"}
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

// detail returns the authority's own text.
func (t *Trouble) detail() string {
	if t.Problem == nil {
		return ""
	}
	return t.Problem.Detail
}
