package compare

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind is what a difference is about.
type Kind string

// The kinds of differences.
const (
	KindError    Kind = "error"    // one side did not answer
	KindStatus   Kind = "status"   // the status code
	KindLocation Kind = "location" // where a redirect leads
	KindCookie   Kind = "cookie"   // Set-Cookie, attribute by attribute
	KindCORS     Kind = "cors"     // Access-Control-*
	KindCache    Kind = "cache"    // caching headers
	KindSecurity Kind = "security" // security headers
	KindHeader   Kind = "header"   // other header fields
	KindBody     Kind = "body"     // the content
	KindTLS      Kind = "tls"      // the certificate
	KindProtocol Kind = "protocol" // the version of HTTP
	KindTime     Kind = "time"     // the time until the response head
)

// Weight is how much a difference matters.
type Weight string

// The weights, from what breaks clients to what may be read.
const (
	// Breaks says that clients notice: the request does not count as ready.
	Breaks Weight = "breaks"
	// Differs says that a person should look: the request does not count as ready.
	Differs Weight = "differs"
	// Note says that it is known and harmless; the request counts as ready.
	Note Weight = "note"
)

// Difference is one thing in which the new side's answer is not the old one's.
type Difference struct {
	// Kind is what it is about.
	Kind Kind `json:"kind"`
	// Weight is how much it matters.
	Weight Weight `json:"weight"`
	// Name is the name of the header or cookie; empty for others.
	Name string `json:"name,omitempty"`
	// Old is what the old side answers.
	Old string `json:"old"`
	// New is what the new side answers.
	New string `json:"new"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// maxDifferences limits the differences that are reported for one request. A side can
// send thousands of fields.
const maxDifferences = 50

// differences compares two answers of the old side with one of the new side.
func differences(rq Request, old, again, ours *answer, slower float64) []Difference {
	c := &comparison{request: rq, old: old, again: again, new: ours}
	c.all(slower)
	if c.more > 0 {
		c.found = append(c.found, Difference{Kind: KindHeader, Weight: c.heaviest, Text: fmt.Sprintf("more than %d differences; the rest is left out", maxDifferences)})
	}
	return c.found
}

func (c *comparison) all(slower float64) {
	if c.old.err != nil || c.new.err != nil {
		c.errors()
		return
	}
	c.status()
	c.cookies()
	c.fields()
	c.content()
	c.certificate()
	c.protocol()
	c.time(slower)
}

// comparison gathers the differences of one request.
type comparison struct {
	request         Request
	old, again, new *answer
	found           []Difference
	more            int    // differences that were left out
	heaviest        Weight // of these
}

func (c *comparison) add(kind Kind, weight Weight, name, old, ours, text string) {
	if len(c.found) >= maxDifferences {
		if c.more++; heavy(weight) >= heavy(c.heaviest) {
			c.heaviest = weight
		}
		return
	}
	c.found = append(c.found, Difference{kind, weight, shortenTo(name, maxName), shorten(old), shorten(ours), shortenTo(text, 3*maxShown)})
}

// The bounds of values, and of the names of fields and cookies, in a report, in bytes.
const (
	maxShown = 300
	maxName  = 100
)

func shorten(s string) string { return shortenTo(s, maxShown) }

func shortenTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (c *comparison) errors() {
	old, ours := errorText(c.old), errorText(c.new)
	switch {
	case c.new.err == nil:
		c.add(KindError, Differs, "", old, ours, "the old proxy does not answer, so there is nothing to compare with: "+old)
	case c.old.err == nil:
		c.add(KindError, Breaks, "", old, ours, "the new proxy does not answer: "+ours)
	default:
		c.add(KindError, Differs, "", old, ours, "neither proxy answers: "+old)
	}
}

func errorText(a *answer) string {
	if a.err == nil {
		return fmt.Sprintf("status %d", a.status)
	}
	return a.err.Error()
}

func (c *comparison) status() {
	if c.old.status == c.new.status {
		return
	}
	weight := Breaks
	if c.again.err == nil && c.again.status == c.new.status {
		weight = Note // the old side is not of one mind itself
	}
	c.add(KindStatus, weight, "", fmt.Sprint(c.old.status), fmt.Sprint(c.new.status),
		fmt.Sprintf("status %d became %d", c.old.status, c.new.status))
}

// noise reports whether the old side's own two answers differ in a field.
func (c *comparison) noise(name string) bool {
	return c.again.err == nil && !slices.Equal(c.old.header.Values(name), c.again.header.Values(name))
}

// always differ, or belong to the connection: they say nothing about the answer.
var always = []string{"Date", "Age", "Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length", "Set-Cookie",
	"X-Request-Id", "Cf-Ray", "Expires", "X-Runtime", "X-Response-Time", "Server-Timing", "Traceparent"}

// known differ between proxies by their nature: they are reported as notes.
var known = []string{"Server", "Via", "Alt-Svc", "Proxy-Status", "Cache-Status", "X-Cache", "X-Cache-Status", "X-Powered-By", "X-Proxy-Cache"}

// fields compares the header fields other than cookies.
func (c *comparison) fields() {
	own := c.ownPages()
	for _, name := range names(c.old.header, c.new.header) {
		if slices.Contains(always, name) {
			continue
		}
		old, ours := strings.Join(c.old.header.Values(name), ", "), strings.Join(c.new.header.Values(name), ", ")
		if name == "Location" && c.circles(old, ours) {
			continue
		}
		if same(name, old, ours) || c.noise(name) || own && slices.Contains(pageFields, name) {
			continue
		}
		if name == "Location" {
			c.location(old, ours)
			continue
		}
		kind, weight := kindOf(name)
		if name == "Content-Type" && c.redirects() {
			weight = Note
		}
		c.add(kind, weight, name, old, ours, fieldText(name, old, ours))
	}
}

func names(headers ...http.Header) []string {
	var all []string
	for _, h := range headers {
		for name := range h {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lists are fields whose value is a set: order, spaces and letter case say nothing.
var lists = []string{"Vary", "Cache-Control", "Allow", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
	"Access-Control-Expose-Headers", "Content-Encoding", "Accept-Ranges"}

func same(name, old, ours string) bool {
	if slices.Contains(lists, name) {
		return slices.Equal(members(old), members(ours))
	}
	if name == "Etag" { // a proxy that compresses weakens it (RFC 9110, section 8.8.1)
		return strings.TrimPrefix(old, "W/") == strings.TrimPrefix(ours, "W/")
	}
	if name == "Content-Type" {
		return strings.EqualFold(strings.ReplaceAll(old, " ", ""), strings.ReplaceAll(ours, " ", ""))
	}
	return old == ours
}

func members(list string) []string {
	parts := strings.Split(strings.ToLower(list), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	slices.Sort(parts)
	return slices.Compact(parts)
}

// kindOf says what a field is about, and how much it matters.
func kindOf(name string) (Kind, Weight) {
	switch {
	case slices.Contains(known, name):
		return KindHeader, Note
	case strings.HasPrefix(name, "Access-Control-"), name == "Timing-Allow-Origin":
		return KindCORS, Breaks
	}
	switch name {
	case "Cache-Control", "Etag", "Last-Modified", "Vary", "Pragma", "Cdn-Cache-Control", "Surrogate-Control":
		return KindCache, Differs
	case "Strict-Transport-Security", "Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Frame-Options",
		"X-Content-Type-Options", "Referrer-Policy", "Permissions-Policy", "Cross-Origin-Opener-Policy",
		"Cross-Origin-Embedder-Policy", "Cross-Origin-Resource-Policy", "Www-Authenticate", "X-Xss-Protection":
		return KindSecurity, Differs
	case "Content-Encoding":
		return KindHeader, Note
	}
	return KindHeader, Differs
}

func fieldText(name, old, ours string) string {
	name = shortenTo(name, maxName)
	switch {
	case old == "":
		return fmt.Sprintf("%s is new: %s", name, shorten(ours))
	case ours == "":
		return fmt.Sprintf("%s is missing; it was %s", name, shorten(old))
	}
	return fmt.Sprintf("%s was %s and is %s", name, shorten(old), shorten(ours))
}

// location compares where redirects lead. During a test side by side the new side
// listens on other ports, and leads to these; and a Location may be relative.
func (c *comparison) location(old, ours string) {
	weight := Breaks
	if base, err := url.Parse(c.request.URL()); err == nil {
		a, errA := base.Parse(old)
		b, errB := base.Parse(ours)
		if errA == nil && errB == nil {
			a.Host, b.Host = a.Hostname(), b.Hostname()
			if a.String() == b.String() {
				weight = Note
			}
		}
	}
	c.add(KindLocation, weight, "Location", old, ours, fieldText("Location", old, ours))
}

// circles reports redirects that lead back to the request, and whether there is nothing
// else to report about Location.
func (c *comparison) circles(old, ours string) bool {
	if !c.leadsBack(ours) || c.new.status < 300 || c.new.status > 399 {
		return false
	}
	if c.leadsBack(old) {
		c.add(KindLocation, Note, "Location", old, ours, "both proxies send the client back to where it is, in a circle: "+shorten(ours))
		return true
	}
	c.add(KindLocation, Breaks, "Location", old, ours, "the new proxy sends the client back to where it is, in a circle: "+shorten(ours))
	return true
}

// leadsBack reports whether a Location is the URL of the request itself. Ports are those
// of the test, and do not count.
func (c *comparison) leadsBack(location string) bool {
	base, err := url.Parse(c.request.URL())
	if err != nil || location == "" {
		return false
	}
	to, err := base.Parse(location)
	return err == nil && to.Scheme == base.Scheme && strings.EqualFold(to.Hostname(), base.Hostname()) && to.RequestURI() == base.RequestURI()
}

// redirects reports whether both sides redirect: the Location counts, not the words of the
// page below it.
func (c *comparison) redirects() bool {
	return c.old.status >= 300 && c.old.status < 400 && c.old.status == c.new.status
}

// content compares bodies.
func (c *comparison) content() {
	switch {
	case c.new.broken && !c.old.broken:
		c.add(KindBody, Breaks, "", c.old.body, "", "the body ends too early or cannot be decoded")
		return
	case c.old.broken && !c.new.broken:
		c.add(KindBody, Differs, "", "", c.new.body, "the old proxy's body ends too early or cannot be decoded, so there is nothing to compare with")
		return
	case c.old.body == c.new.body && c.old.size == c.new.size, c.old.cut || c.new.cut,
		c.again.err == nil && c.again.body != c.old.body: // noise: the page differs each time
		return
	}
	weight, text := Breaks, fmt.Sprintf("the content differs: %d bytes became %d", c.old.size, c.new.size)
	switch {
	case c.ownPages():
		return
	case c.redirects():
		weight = Note
	case c.old.status >= 400 && c.old.status == c.new.status:
		weight, text = Differs, errorPageText(c.old.ownPage(c.request.Method), c.new.ownPage(c.request.Method), text)
	}
	c.add(KindBody, weight, "", fmt.Sprintf("%d bytes, %s", c.old.size, c.old.body), fmt.Sprintf("%d bytes, %s", c.new.size, c.new.body), text)
}

func (c *comparison) certificate() {
	a, b := c.old.tls, c.new.tls
	if a == nil || b == nil {
		return
	}
	if a.covers && !b.covers {
		c.add(KindTLS, Breaks, "", "names the host", "does not name the host", "the new certificate does not name the host")
	}
	if a.trusted && !b.trusted {
		c.add(KindTLS, Breaks, "", a.issuer, b.issuer, "the new certificate is not one that clients trust; its issuer is "+shorten(b.issuer))
	}
	if soon := time.Now().AddDate(0, 0, 7); b.notAfter.Before(soon) && !a.notAfter.Before(soon) {
		c.add(KindTLS, Differs, "", a.notAfter.Format(time.DateOnly), b.notAfter.Format(time.DateOnly), "the new certificate ends on "+b.notAfter.Format(time.DateOnly))
	}
	if a.version > b.version {
		c.add(KindTLS, Differs, "", tls.VersionName(a.version), tls.VersionName(b.version), "TLS became older: "+tls.VersionName(b.version))
	}
}

func (c *comparison) protocol() {
	if c.old.proto != c.new.proto {
		weight := Note
		if strings.HasPrefix(c.old.proto, "HTTP/2") {
			weight = Differs
		}
		c.add(KindProtocol, weight, "", c.old.proto, c.new.proto, c.old.proto+" became "+c.new.proto)
	}
}

// noticeable is the minimum time that is reported.
const noticeable = 100 * time.Millisecond

func (c *comparison) time(slower float64) {
	old := c.old.headAfter
	if c.again.err == nil {
		old = max(old, c.again.headAfter)
	}
	if c.new.headAfter > old+noticeable && float64(c.new.headAfter) > slower*float64(old) {
		c.add(KindTime, Note, "", old.Round(time.Millisecond).String(), c.new.headAfter.Round(time.Millisecond).String(),
			fmt.Sprintf("the response head arrived after %v, before after %v", c.new.headAfter.Round(time.Millisecond), old.Round(time.Millisecond)))
	}
}
