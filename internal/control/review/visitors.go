package review

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/feature/headers"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/ratelimit"
)

// Visitor is the code of a sentence that says what a changed feature means for visitors.
const Visitor = "visitor"

// acting are features at one place: those of a route, or of a proxy, policy or the
// defaults, where route is nil.
type acting struct {
	features *config.Features
	route    *config.Route
}

// switchable is implemented by all settings of features.
type switchable interface{ Off() bool }

// on returns settings, and whether the feature acts with them.
func on[T switchable](c T, isSet bool) (T, bool) { return c, isSet && !c.Off() }

// effects say for each feature what it means for visitors while it acts ("" is that it does
// not), and what its end means.
var effects = map[string]struct {
	on  func(a acting) string
	off string
}{
	"client_ip": {func(a acting) string {
		if c, ok := on(a.features.ClientIP, a.features.ClientIP != nil); ok {
			return "visitors behind " + listed(slices.Concat(c.CDN, []string{"trusted proxies"})) + " count with their own address in filters, limits and logs"
		}
		return ""
	}, "visitors count with the address of the connection in filters, limits and logs"},
	"ip_filter": {func(a acting) string {
		c, ok := on(a.features.IPFilter, a.features.IPFilter != nil)
		switch {
		case !ok || len(c.Allow)+len(c.Deny) == 0:
			return ""
		case c.Mode == ipfilter.Observe:
			return "visitors notice nothing: those that ip_filter would reject are only logged"
		case len(c.Allow) > 0:
			return "visitors from addresses outside " + listed(shortened(c.Allow)) + " get 403"
		}
		return "visitors from " + listed(shortened(c.Deny)) + " get 403"
	}, "visitors of every address are let in"},
	"rate_limit": {func(a acting) string {
		c, ok := on(a.features.RateLimit, a.features.RateLimit != nil)
		switch {
		case !ok:
			return ""
		case c.Mode == ratelimit.Observe:
			return "visitors notice nothing: requests beyond the rate limit are only logged"
		}
		return fmt.Sprintf("a visitor who sends more than %s in %s gets 429", counted(c.Requests, "request", "requests"), time.Duration(c.Period))
	}, "the number of requests of a visitor is not limited"},
	"redirect_http_to_https": {func(a acting) string {
		if _, ok := on(a.features.RedirectHTTPToHTTPS, a.features.RedirectHTTPToHTTPS != nil); ok {
			return "visitors who come over HTTP are redirected to HTTPS"
		}
		return ""
	}, "visitors who come over HTTP stay there"},
	"cors": {func(a acting) string {
		if c, ok := on(a.features.CORS, a.features.CORS != nil); ok {
			return "pages of " + cmp.Or(listed(shortened(c.AllowOrigins)), "no other site") + " may read responses in browsers"
		}
		return ""
	}, "headgate no longer lets pages of other sites read responses"},
	"maintenance": {func(a acting) string {
		c, ok := on(a.features.Maintenance, a.features.Maintenance != nil)
		if !ok {
			return ""
		}
		text := "visitors get 503 and the maintenance page"
		if pass := c.Bypass; len(pass.Addresses) > 0 || pass.Header != nil || pass.Cookie != nil {
			text += ", except those that the bypass lets through"
		}
		return text
	}, "visitors reach the site again"},
	"redirects": {func(a acting) string {
		if c := a.features.Redirects; len(c) > 0 {
			return fmt.Sprintf("visitors whose path matches one of %s are redirected", counted(len(c), "rule", "rules"))
		}
		return ""
	}, "no redirect rule applies to visitors"},
	"request_body_limit": {func(a acting) string {
		if c := a.features.RequestBodyLimit; c != nil && *c != 0 {
			return fmt.Sprintf("uploads larger than %v get 413", *c)
		}
		return ""
	}, "uploads may have any size"},
	"request_timeout": {func(a acting) string {
		if c := a.features.RequestTimeout; c != nil && *c != 0 {
			return fmt.Sprintf("visitors get 504 when a server has not answered after %v", *c)
		}
		return ""
	}, "visitors wait as long as a server takes to answer"},
	"gate": {func(a acting) string {
		if c, ok := on(a.features.Gate, a.features.Gate != nil); ok {
			return "visitors need to sign in, and only " + listed(shortened(c.Allow)) + " are let in"
		}
		return ""
	}, "visitors need not sign in"},
	"basic_auth": {func(a acting) string {
		if c, ok := on(a.features.BasicAuth, a.features.BasicAuth != nil); ok {
			return fmt.Sprintf("visitors need a name and a password (%s)", counted(len(c.Users), "user", "users"))
		}
		return ""
	}, "visitors need no password"},
	"forward_auth": {func(a acting) string {
		if _, ok := on(a.features.ForwardAuth, a.features.ForwardAuth != nil); ok {
			return "visitors need to sign in at the auth server"
		}
		return ""
	}, "visitors need not sign in at the auth server"},
	"sticky_cookie": {func(a acting) string {
		if a.route != nil && a.route.StickyCookie != nil && a.route.StickyCookie.Enabled {
			return "each visitor stays with one server, by the cookie " + a.route.StickyCookie.Name
		}
		return ""
	}, "each request of a visitor may go to another server"},
	"rewrite": {func(a acting) string {
		if _, ok := on(a.features.Rewrite, a.features.Rewrite != nil); ok {
			return "visitors keep their addresses; servers get rewritten paths"
		}
		return ""
	}, "servers get paths that are not rewritten"},
	"headers": {func(a acting) string {
		c := a.features.Headers
		response := slices.ContainsFunc(c, func(rule headers.Rule) bool { return rule.Direction == headers.Response })
		switch {
		case len(c) == 0:
			return ""
		case response:
			return "visitors get other response headers"
		}
		return "visitors notice nothing: only servers get other headers"
	}, "headers are passed on unchanged"},
	"cache": {func(a acting) string {
		c, ok := on(a.features.Cache, a.features.Cache != nil)
		switch {
		case !ok:
			return ""
		case c.DefaultTTL > 0:
			return fmt.Sprintf("visitors may get responses from the cache, up to %v old or as old as the server allows", c.DefaultTTL)
		}
		return "visitors may get responses from the cache, as old as the server allows"
	}, "visitors get every response from a server"},
	"compression": {func(a acting) string {
		if _, ok := on(a.features.Compression, a.features.Compression != nil); ok {
			return "visitors get compressed responses; their content is the same"
		}
		return ""
	}, "visitors get responses as servers send them"},
	"mirror": {func(a acting) string {
		if a.route != nil && a.route.Mirror != nil && a.route.Mirror.Enabled {
			return fmt.Sprintf("visitors notice nothing: %d %% of the requests are also sent to %s", a.route.Mirror.Percent, counted(len(a.route.Mirror.Servers), "other server", "other servers"))
		}
		return ""
	}, "no copies of requests are sent"},
	"error_pages": {func(a acting) string {
		if len(a.features.ErrorPages) > 0 {
			return "visitors see these pages instead of the usual error pages"
		}
		return ""
	}, "visitors see the usual error pages"},
	"security_headers": {func(a acting) string {
		if c, ok := on(a.features.SecurityHeaders, a.features.SecurityHeaders != nil); ok {
			return fmt.Sprintf("browsers of visitors apply the security headers of the preset %s; what they forbid stops working", c.Preset)
		}
		return ""
	}, "headgate adds no security headers"},
}

// judgeVisitors says what each feature that changed means for visitors.
func (r *reviewer) judgeVisitors() {
	for i := range r.Difference.Objects {
		o := &r.Difference.Objects[i]
		if o.Change != diff.Changed {
			continue
		}
		seen := map[string]bool{}
		for j := range o.Fields {
			steps := split(o.Fields[j].Path)
			if len(steps) == 0 {
				continue
			}
			index := -1
			if steps[0].name == "routes" && steps[0].indexed && len(steps) > 1 {
				index, steps = steps[0].index, steps[1:]
			}
			key := fmt.Sprintf("%d %s", index, steps[0].name)
			if _, isFeature := effects[steps[0].name]; !isFeature || seen[key] {
				continue
			}
			seen[key] = true
			r.sayVisitors(Address{o.Kind, o.Name}, index, steps[0].name)
		}
	}
}

// sayVisitors says what a feature of an object, or of one of its routes, means now.
func (r *reviewer) sayVisitors(at Address, index int, feature string) {
	before, after := r.actingAt(r.Before, at, index, nil), r.actingAt(r.After, at, index, nil)
	if index >= 0 && after.route != nil {
		before = r.actingAt(r.Before, at, index, after.route)
	}
	if after.features == nil {
		return
	}
	where, path := ": ", feature
	if index >= 0 {
		where, path = ": route "+shorten(after.route.Path)+": ", fmt.Sprintf("routes[%d].%s", index, feature)
	}
	effect := effects[feature]
	text := effect.on(after)
	if text == "" && before.features != nil && effect.on(before) != "" {
		text = effect.off
	}
	if text != "" {
		r.addSentence(at, Sentence{Severity: Info, Code: Visitor, Path: path, Text: where + text})
	}
}

// actingAt returns the features of an object, or of the route of it with an index, or the
// one that is the same as like.
func (r *reviewer) actingAt(c *config.Config, at Address, index int, like *config.Route) acting {
	switch at.Kind {
	case "policies":
		if p := c.Policies[at.Name]; p != nil {
			return acting{features: &p.Features}
		}
	case "defaults":
		return acting{features: &c.Defaults.Features}
	case "proxies":
		p := c.Proxies[at.Name]
		switch {
		case p == nil:
		case index < 0:
			return acting{features: &p.Features}
		case like != nil:
			if route := sameRoute(p, like); route != nil {
				return acting{&route.Features, route}
			}
		case index < len(p.Routes):
			return acting{&p.Routes[index].Features, p.Routes[index]}
		}
	}
	return acting{}
}
