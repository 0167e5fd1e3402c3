package cache

import (
	"fmt"
	"io"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Diagnosis explains whether the cache stores the response to a request, as a server sends it
// now, and why.
type Diagnosis struct {
	// Asked is whether a request was sent to a server. It is not if the request alone decides.
	Asked bool `json:"asked" required:"true"`
	// Status is the status of the response; 0 without one.
	Status int `json:"status,omitempty"`
	// Stored is whether such a response is stored.
	Stored bool `json:"stored" required:"true"`
	// Detail is the keyword in Cache-Status: the detail, or fwd where the request decides.
	Detail string `json:"detail,omitempty"`
	// Why is the reason as a sentence.
	Why string `json:"why" required:"true"`
	// Field is the header field that decides, as it was sent. Of a cookie, it is the name.
	Field string `json:"field,omitempty"`
	// Rule is the section of the standard, or the setting.
	Rule string `json:"rule,omitempty"`
	// Fix is what to change so that the response is stored.
	Fix string `json:"fix,omitempty"`
	// Fresh is for how many more seconds it is served without asking a server.
	Fresh int64 `json:"fresh,omitempty"`
	// WhileRevalidate is for how many seconds after that it is served stale while it is fetched.
	WhileRevalidate int64 `json:"stale_while_revalidate,omitempty"`
	// IfError is for how many seconds after that it is served if the servers fail.
	IfError int64 `json:"stale_if_error,omitempty"`
	// Vary are the request headers of which each combination is stored separately.
	Vary string `json:"vary,omitempty"`
}

// The bounds of the request of a diagnosis.
const (
	diagnoseTime = 10 * time.Second
	diagnoseBody = 16 << 20 // bytes of a body of unknown length
)

// Diagnose sends one GET for the request of ex, without conditions and ranges, to a server, decides about the response as for
// a client, and stores nothing. ex is what the filters of the route made of the request.
func (c *Cache) Diagnose(ex *exchange.Exchange) Diagnosis {
	c.chooseLanguage(ex)
	if d, decided := c.diagnoseRequest(ex); decided {
		return d
	}
	h := c.newHit(ex)
	f := c.newFetch(ex, nil)
	f.leader.Store(nil) // no client waits
	f.ex.Limits = bounded(f.ex.Limits)
	defer f.close()
	began := c.store.now()
	if answer := c.inner.Respond(&f.ex); answer != nil {
		return Diagnosis{Asked: true, Detail: answer.Reason.String(), Why: "no server answered: " + answer.Cause, Fix: "check the servers of the route; a failure is never stored"}
	}
	rs := &f.ex.Response
	v, why := c.judgeResponse(ex, rs, c.store.clock(), time.Duration(c.store.now()-began), part{})
	if _, _, ok := h.readVary(nil, &rs.Header, &ex.Request.Header); why == "" && !ok {
		why = whyNotKeyed
	}
	if why == "" && rs.Length < 0 && f.longerThan(min(c.maxEntry, diagnoseBody)) {
		why = whyTooLarge
	}
	d := Diagnosis{Asked: true, Status: rs.Status, Vary: rs.Header.Get(header.Vary)}
	if why == "" {
		d.kept(&v, rs)
	} else {
		d.refused(why, &v, ex, rs, c)
	}
	return d.cloned()
}

// diagnoseRequest decides where the request alone does.
func (c *Cache) diagnoseRequest(ex *exchange.Exchange) (Diagnosis, bool) {
	rq := &ex.Request
	var cc directives
	cc.parse(&rq.Header, header.CacheControl)
	switch status := passes(ex); {
	case status == statusMethod:
		return Diagnosis{Detail: "method", Why: "the method " + rq.Method + " is never answered from the cache", Rule: "RFC 9111, section 3",
			Fix: "use GET; the response to a POST is stored for GET only if the server sends Content-Location and a lifetime"}.cloned(), true
	case status != "" && ex.Gated:
		return Diagnosis{Detail: "bypass", Why: "the route requires a sign-in, so its responses are for one person", Rule: "gate of the route",
			Fix: "serve what is for everyone on a route without a gate"}, true
	case status != "":
		return Diagnosis{Detail: "bypass", Why: "the request has a body, an upgrade, If-Match, If-Unmodified-Since or a field that overrides its method or path", Rule: "RFC 9111, section 4.3.2",
			Fix: "send the request without it"}, true
	case cc.has&noStore != 0:
		return Diagnosis{Detail: "request", Why: "the request itself forbids to store the response", Field: "Cache-Control: " + rq.Header.Get(header.CacheControl), Rule: "RFC 9111, section 5.2.1.5",
			Fix: "send the request without no-store"}.cloned(), true
	}
	return Diagnosis{}, false
}

// bounded returns limits with which a diagnosis ends soon.
func bounded(l exchange.Limits) exchange.Limits {
	for _, d := range []*time.Duration{&l.RequestTimeout, &l.ConnectTimeout, &l.BodyIdle} {
		if *d <= 0 || *d > diagnoseTime {
			*d = diagnoseTime
		}
	}
	return l
}

// longerThan reads the body up to a limit and reports whether it is longer. It gives up, with
// false, after a time.
func (f *fetch) longerThan(limit int64) bool {
	body, buf, n := f.body(), make([]byte, 32<<10), int64(0)
	for end := time.Now().Add(diagnoseTime); time.Now().Before(end); {
		k, err := body.Read(buf)
		if n += int64(k); n > limit || err != nil {
			return n > limit && (err == nil || err == io.EOF)
		}
	}
	return false
}

// kept describes a response that is stored.
func (d *Diagnosis) kept(v *verdict, rs *exchange.Response) {
	d.Stored, d.Fresh, d.WhileRevalidate, d.IfError = true, max(0, v.life-v.age), v.while, v.onError
	rules := v.rules.has
	switch {
	case rules&noCache != 0:
		d.Fresh = 0
		d.Why, d.Rule = "stored, but revalidated with the server for each request", "RFC 9111, section 5.2.2.4"
	case !v.explicit:
		d.Why, d.Rule = fmt.Sprintf("stored, and fresh for %d s by default_ttl or heuristic", d.Fresh), "RFC 9111, section 4.2.2"
	case d.Fresh == 0:
		d.Why, d.Rule = "stored, but already stale when it arrives, so it is revalidated", "RFC 9111, section 4.2"
		d.Fix = "send a longer max-age or s-maxage, and no larger Age"
	default:
		d.Why, d.Rule = fmt.Sprintf("stored, and fresh for %d s", d.Fresh), "RFC 9111, section 4.2.1"
	}
	d.Field = lifetimeField(v, rs)
}

// lifetimeField returns the field that sets the lifetime, "" if there is none.
func lifetimeField(v *verdict, rs *exchange.Response) string {
	id := header.CacheControl
	switch rules := v.rules.has; {
	case v.targeted:
		id = header.CDNCacheControl
	case rules&(sMaxage|maxAge|noCache) == 0 && v.explicit:
		id = header.Expires
	}
	return fieldText(&rs.Header, id)
}

// fieldText returns all fields of a name as one line, "" if there are none.
func fieldText(list *header.List, id header.ID) string {
	var values []string
	for _, f := range list.All() {
		if f.ID == id {
			values = append(values, f.Value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return id.String() + ": " + strings.Join(values, ", ")
}

// refused describes a response that is not stored.
func (d *Diagnosis) refused(why string, v *verdict, ex *exchange.Exchange, rs *exchange.Response, c *Cache) {
	d.Detail = why
	r := remedies[why]
	d.Why, d.Rule, d.Fix = r.why, r.rule, r.fix
	switch why {
	case "no-store", "private", "must-understand":
		d.Field = fieldText(&rs.Header, header.CacheControl)
		if v.targeted {
			d.Field = fieldText(&rs.Header, header.CDNCacheControl)
		}
	case "no-lifetime":
		d.Field = fieldText(&rs.Header, header.CacheControl)
		if ex.Request.Header.Has(header.Cookie) && c.defaultTTL > 0 {
			d.Why += "; default_ttl does not apply to requests with a Cookie, unless the response has Last-Modified"
		}
	case "set-cookie":
		name, _, _ := strings.Cut(rs.Header.Get(header.SetCookie), "=")
		d.Field = "Set-Cookie: " + name + "=…"
	case whyAuthorization:
		d.Field = "Authorization"
	case whyNotKeyed:
		d.Field = fieldText(&rs.Header, header.Vary)
	case "event-stream":
		d.Field = fieldText(&rs.Header, header.ContentType)
	case whyTooLarge:
		d.Why = fmt.Sprintf("the body is larger than max_entry, which is %d bytes", c.maxEntry)
		if rs.Length > 0 {
			d.Why = fmt.Sprintf("the body has %d bytes; max_entry is %d", rs.Length, c.maxEntry)
			d.Field = fmt.Sprintf("Content-Length: %d", rs.Length)
		}
	}
}

// remedy is what an operator needs to know of a reason.
type remedy struct{ why, rule, fix string }

// remedies are those of the reasons that judgeResponse has.
var remedies = map[string]remedy{
	"no-store":        {"the response forbids to store it", "RFC 9111, section 5.2.2.5", "remove no-store if everyone may get the response; for headgate alone, send CDN-Cache-Control: max-age=60"},
	"private":         {"the response is for one user", "RFC 9111, section 5.2.2.7", "send public or s-maxage if everyone may get it; for headgate alone, send CDN-Cache-Control: max-age=60"},
	"must-understand": {"the response has must-understand, and headgate does not know the caching rules of its status", "RFC 9111, section 5.2.2.3", "send another status, or no must-understand"},
	"status":          {"a response with this status is not stored", "RFC 9111, section 3", "nothing, if the status is right"},
	"event-stream":    {"an event stream never ends", "text/event-stream", "nothing: each client needs its own stream"},
	whyAuthorization:  {"the request has Authorization", "RFC 9111, section 3.5", "send public, s-maxage or must-revalidate if the response is the same for everyone"},
	whyPersonal:       {"the client has signed in at headgate, so the response may be for one person", "basic_auth, forward_auth or a client certificate", "send public if the response is the same for everyone"},
	"set-cookie":      {"the response sets a cookie, so it may be for one person", "RFC 9111, section 7.3; headgate requires consent", "set the cookie only where it is needed, or send public, s-maxage or CDN-Cache-Control"},
	"no-lifetime":     {"the response does not state how long it is fresh", "RFC 9111, section 4.2", "send Cache-Control: max-age=60 or s-maxage=60; or set default_ttl or heuristic of the cache"},
	"no-validator":    {"the response is never fresh, and has no ETag and no Last-Modified to revalidate it", "RFC 9111, section 4.3.1", "send an ETag, or a lifetime above 0"},
	"range":           {"a part that cannot be revalidated is not stored", "RFC 9111, section 3.3", "send a lifetime above 0"},
	whyNotKeyed:       {"the response varies by everything (Vary: *), by a header that the request has twice in different spellings, or its head is too large", "RFC 9111, section 4.1", "name the request headers that make a difference in Vary"},
	whyTooLarge:       {"the body is too large", "max_entry", "increase max_entry of the cache"},
}

// cloned returns d with texts of its own: those of exchanges end with them.
func (d Diagnosis) cloned() Diagnosis {
	d.Field, d.Vary = strings.Clone(d.Field), strings.Clone(d.Vary)
	return d
}

// Text returns it in lines, each with a label.
func (d *Diagnosis) Text(line func(label, text string)) {
	state := "not stored"
	if d.Stored {
		state = "stored"
	}
	if d.Status > 0 {
		state = fmt.Sprintf("%d, %s", d.Status, state)
	}
	if d.Detail != "" {
		state += " (" + d.Detail + ")"
	}
	line("response", state)
	for _, l := range [][2]string{{"why", d.Why}, {"field", d.Field}, {"rule", d.Rule}, {"vary", d.Vary}, {"fix", d.Fix}} {
		if l[1] != "" {
			line(l[0], l[1])
		}
	}
}

// WhyNot returns why a response with a detail in Cache-Status is not stored, and what to
// change; "" for a detail that is not about that.
func WhyNot(detail string) (why, fix string) {
	r := remedies[detail]
	return r.why, r.fix
}
