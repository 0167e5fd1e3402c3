package upstream

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Sticky keeps a client on the server that handled its first request, with an encrypted
// cookie. Clients without a valid cookie are distributed as load_balancing configures. When
// the server of a client fails, the client gets another one and its cookie.
type Sticky struct {
	// Enabled is whether the cookie is used.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Name is the name of the cookie. It is not forwarded to servers.
	Name string `json:"name" label:"true" default:"headgate_affinity" min:"1" max:"128" example:"sid"`
	// MaxAge is how long the client keeps the cookie. 0 or absent is until the browser is
	// closed.
	MaxAge unit.Duration `json:"max_age" label:"true" default:"0s" min:"0s" max:"400d" example:"1d"`
	// SameSite is which requests from other sites include the cookie: `lax` those that open
	// a page, `strict` none, `none` all. With none, browsers require HTTPS.
	SameSite SameSite `json:"same_site" label:"true" default:"lax" enum:"lax,strict,none"`
}

// SameSite is the attribute of a cookie.
type SameSite string

// The values of same_site, and how a cookie writes them.
const (
	SameSiteLax    SameSite = "lax"
	SameSiteStrict SameSite = "strict"
	SameSiteNone   SameSite = "none"
)

// Check reports problems of the settings of a route with this path, which are
// at at.
func (c *Sticky) Check(path string, at schema.Place) {
	const wholeHost = "__Host-" // RFC 6265bis, section 4.1.3.2
	switch {
	case !http1.ValidName(c.Name):
		at.Field("name").Problemf("write a name like headgate_affinity", "%q is not the name of a cookie", c.Name)
	case len(c.Name) >= len(wholeHost) && header.EqualFold(c.Name[:len(wholeHost)], wholeHost) && path != "/":
		at.Field("name").Problemf("write a name like headgate_affinity", "browsers drop the cookie: a name that starts with %s is for the path /, not %s", wholeHost, path)
	}
	if c.MaxAge > 0 && c.MaxAge.D() < time.Second {
		at.Field("max_age").Problem("a cookie is kept for whole seconds", "write 1s or more, or 0 for until the browser is closed")
	}
}

// Affinity configures the cookie of a route.
type Affinity struct {
	*Sticky
	// Key makes the values.
	Key *AffinityKey
	// Proxy and Route say whose cookies are valid. Route is a path as well:
	// browsers send the cookie there.
	Proxy, Route string
}

// Filter returns the filter that removes the cookie from requests and adds it to
// responses. It is in front of the filter that maps the paths of cookies, as
// this one must not be mapped.
func (a *Affinity) Filter() exchange.Filter {
	k := &sticky{name: a.Name, slot: affinities}
	return exchange.Filter{Name: "sticky_cookie", Request: k.request, Response: k.response}
}

// pins maps cookie values to the servers of a route, by their index.
type pins struct {
	values        []pin
	plain, secure []string // the Set-Cookie of each server
}

// newPins returns nil for a route without a cookie.
func newPins(a *Affinity, list []*Server) *pins {
	if a == nil {
		return nil
	}
	names := make([]string, len(list))
	for i, srv := range list {
		names[i] = srv.known()
	}
	return a.pins(names, a.Route)
}

// pins returns the cookies for names, which browsers send for a path.
func (a *Affinity) pins(names []string, path string) *pins {
	n := len(names)
	k := &pins{values: make([]pin, n), plain: make([]string, n), secure: make([]string, n)}
	for i, name := range names {
		text := a.Key.value(a.Proxy, a.Route, name)
		k.values[i], _ = parsePin(text)
		k.plain[i], k.secure[i] = a.cookie(text, path, a.SameSite == SameSiteNone), a.cookie(text, path, true)
	}
	return k
}

// of returns the Set-Cookie for the name at an index.
func (k *pins) of(ex *exchange.Exchange, at int) string {
	if ex.Request.Scheme == "https" {
		return k.secure[at]
	}
	return k.plain[at]
}

// affinity is the server of a client, from its cookie.
type affinity struct {
	// token is the value of the client's cookie; zero without one.
	token pin
	// cookie is the value of a Set-Cookie header for the response, or "" if the client has
	// it already, or if no server responded.
	cookie string
}

// affinities is where sticky cookies are noted. A request that a cache makes of its own
// is for the same client.
var affinities = exchange.NewSlot[affinity](true)

// untell discards the cookie of the response, because another server is tried.
func untell(ex *exchange.Exchange) {
	if a := affinities.Get(ex); a != nil {
		a.cookie = ""
	}
}

// served prepares the cookie for the response of the server at an index of the list.
func (k *pins) served(ex *exchange.Exchange, at int) {
	a := affinities.Get(ex)
	if a == nil {
		a = affinities.Reuse(ex)
		*a = affinity{}
	}
	if a.cookie = ""; a.token == k.values[at] {
		return
	}
	a.cookie = k.of(ex, at)
}

// Pinned returns the place in List of the server that the client's cookie names,
// -1 if it names none.
func (s *Servers) Pinned(ex *exchange.Exchange) int {
	if s.pins == nil {
		return -1
	}
	a := affinities.Get(ex)
	if a == nil {
		return -1
	}
	return s.pins.find(a.token)
}

// cookie returns the value of Set-Cookie.
func (c *Sticky) cookie(value, path string, secure bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%s; Path=%s", c.Name, value, cookiePath(path))
	if c.MaxAge > 0 {
		b.WriteString("; Max-Age=" + strconv.FormatInt(int64(c.MaxAge.D()/time.Second), 10))
	}
	b.WriteString("; HttpOnly")
	if secure {
		b.WriteString("; Secure")
	}
	word := string(c.SameSite)
	return b.String() + "; SameSite=" + strings.ToUpper(word[:1]) + word[1:]
}

// cookiePath returns a path as an attribute can have it: up to what would end
// the attribute.
func cookiePath(path string) string {
	if i := strings.IndexByte(path, ';'); i >= 0 {
		path = path[:strings.LastIndexByte(path[:i], '/')+1]
	}
	return path
}

// sticky is the compiled filter.
type sticky struct {
	name string
	slot *exchange.Slot[affinity]
}

// pin is the value of a cookie.
type pin = [3]uint64

// pinLength is how many characters a value has: 128 bits in base64.
const pinLength = 22

// parsePin parses a value. It reports false for an invalid one.
func parsePin(text string) (p pin, ok bool) {
	var b [24]byte
	if len(text) != pinLength {
		return p, false
	}
	copy(b[:], text)
	for i := range p {
		p[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
	return p, true
}

// find returns the place of the first server whose value p is, and -1 for none. It
// runs in constant time.
func (k *pins) find(p pin) int {
	found := 0
	for i := len(k.values) - 1; i >= 0; i-- {
		v := &k.values[i]
		differs := v[0] ^ p[0] | v[1] ^ p[1] | v[2] ^ p[2]
		// All ones if it is 0: only 0 and its negative have no highest bit.
		same := int(int64(^(differs | -differs)) >> 63)
		found = found&^same | (i+1)&same
	}
	return found - 1
}

// request removes the cookie from the request and records its value.
func (k *sticky) request(ex *exchange.Exchange) *exchange.Answer {
	list := &ex.Request.Header
	if !list.Has(header.Cookie) {
		return nil
	}
	emptied := false
	fields := list.All()
	for i := range fields {
		if f := &fields[i]; f.ID == header.Cookie && strings.Contains(f.Value, k.name) {
			f.Value = k.strip(ex, f.Value)
			emptied = emptied || f.Value == ""
		}
	}
	if emptied {
		list.DeleteFunc(func(f *header.Field) bool { return f.ID == header.Cookie && f.Value == "" })
	}
	return nil
}

// strip returns the value of a Cookie field without our cookie. The others stay
// as they are written.
func (k *sticky) strip(ex *exchange.Exchange, value string) string {
	b := ex.Text.Buffer()
	found, first := false, true
	for part := range strings.SplitSeq(value, ";") {
		name, text, _ := header.CutPair(part)
		if name == k.name {
			found = true
			if p, ok := parsePin(text); ok && k.slot.Get(ex) == nil {
				k.slot.Put(ex, affinity{token: p})
			}
			continue
		}
		if first {
			part = strings.TrimLeft(part, " \t")
		} else {
			b = append(b, ';')
		}
		b, first = append(b, part...), false
	}
	stripped := ex.Text.End(b)
	if !found {
		return value
	}
	return stripped
}

// response sets the cookie if the response is from a server other than that of the client's
// cookie. A response that shared caches may store has none: clients that get it from a
// cache would be assigned to that server, too.
func (k *sticky) response(ex *exchange.Exchange) {
	if a := k.slot.Get(ex); a != nil && a.cookie != "" && !ex.Response.Ours && !shared(&ex.Response.Header) {
		ex.Response.Header.Add(header.SetCookie, a.cookie)
	}
}

// shared reports whether a response says that shared caches may keep it (RFC
// 9111, section 5.2.2).
func shared(list *header.List) bool {
	for i := range list.All() {
		f := &list.All()[i]
		if f.ID != header.CacheControl {
			continue
		}
		for part := range strings.SplitSeq(f.Value, ",") {
			name, _, _ := header.CutPair(part)
			if header.EqualFold(name, "public") || header.EqualFold(name, "s-maxage") {
				return true
			}
		}
	}
	return false
}
