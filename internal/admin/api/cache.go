package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/feature/cache"
	"headgate/internal/metrics"
	"headgate/internal/operator"
	"headgate/internal/plan"
)

// pathExplainCache is the path of the explanation that requests the response from a server.
const pathExplainCache = "/cache/explain"

// cacheRows are the operations on the caches of proxies and routes.
func (a *API) cacheRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: get, path: "/cache", access: viewer, area: areaCache, query: cacheQuery, out: of[cacheState](), handle: a.caches,
			about: "Shows the caches, and what they made of the requests of each route. The requests that only passed by are included."},
		{method: get, path: "/cache/entries", may: []int{404}, access: viewer, area: areaCache, query: entriesQuery, out: of[cacheListing](), handle: a.cacheEntries,
			about: "Lists the largest, most requested or oldest stored responses of this machine. Only admins see the values of query parameters."},
		{method: post, path: pathExplainCache, access: editor, area: areaCache, in: of[explainInput](), out: of[plan.Explanation](), dry: true, handle: withBody(a.explain),
			about: "Shows how a request would be handled, and sends one GET to a server of the route to explain whether the cache stores the response, and why not. Nothing is stored, and a dry run sends nothing. Access control of the route applies as to the client that the input describes."},
		{method: post, path: "/cache/purge", may: []int{404}, access: editor, area: areaCache, in: of[purgeInput](), out: of[purgeBody](), dry: true, handle: withBody(a.purge),
			about: "Removes responses from the caches and returns their number."},
	}
}

var cacheQuery = []parameter{
	{name: "period", about: "The period until now in which requests are counted, from 10s up to 24h; the default is 1h."},
	{name: "limit", about: "The maximum number of routes, up to 1000; the default is 100.", kind: "integer"},
}

var entriesQuery = []parameter{
	{name: "proxy", about: "Only the caches of this proxy."},
	{name: "sort", about: "The order: the largest, the most requested, or the oldest first. The default is size.", enum: []string{string(cache.BySize), string(cache.ByHits), string(cache.ByAge)}},
	{name: "limit", about: "The maximum number of entries, up to 1000; the default is 100.", kind: "integer"},
}

// cacheState is the state of all caches.
type cacheState struct {
	// Period is the number of seconds in which requests are counted. It is shorter than
	// requested if headgate started later.
	Period int `json:"period"`
	// Caches are the caches of this machine, by proxy.
	Caches []plan.CacheState `json:"caches"`
	// Routes are the routes with a cache, those with the most requests in the period first.
	Routes []cachedRoute `json:"routes"`
	// Total is the number of routes with a cache.
	Total int `json:"total"`
}

// cachedRoute is what the cache of a route made of requests.
type cachedRoute struct {
	// Proxy=Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers.
	Route string `json:"route"`
	// Requests are the requests in the period.
	Requests int64 `json:"requests"`
	// Hits are the requests that were answered without the server's body.
	Hits int64 `json:"hits"`
	// Ratio is the part of hits, from 0 to 1. It is absent without requests.
	Ratio *float64 `json:"hit_ratio,omitempty"`
	// Uses are the requests since the start of the process.
	Uses cacheUses `json:"uses"`
}

// cacheUses counts requests by what a cache made of them, in the words of the access log.
type cacheUses struct {
	// Hit counts responses from memory.
	Hit int64 `json:"hit"`
	// Stale counts stale responses.
	Stale int64 `json:"stale"`
	// Revalidated counts responses that a server confirmed first.
	Revalidated int64 `json:"revalidated"`
	// Collapsed counts requests that got the response to another request.
	Collapsed int64 `json:"collapsed"`
	// Miss counts requests that a server answered.
	Miss int64 `json:"miss"`
	// Pass counts requests that cannot be cached.
	Pass int64 `json:"pass"`
}

// caches shows the caches and their use.
func (a *API) caches(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	period, err := c.period(metrics.CoarsePeriod)
	if err != nil {
		return nil, err
	}
	step := metrics.FineStep
	if period > metrics.FinePeriod {
		step = metrics.CoarseStep
	}
	p := a.Control.Plan()
	routes, uses, now := p.CachedRoutes(), a.Control.CacheUses(), time.Now()
	out := cacheState{Caches: p.Caches(), Routes: make([]cachedRoute, 0, len(routes)), Total: len(routes)}
	for _, r := range routes {
		row := cachedRoute{Proxy: r.Proxy, Route: r.Route, Uses: usesOf(uses[exchange.Place{Proxy: r.Proxy, Route: r.Route}])}
		if row.Uses != (cacheUses{}) { // otherwise nothing was counted in the period either
			line := a.Control.Series().Find(metrics.Scope{Kind: metrics.ScopeCache, Proxy: r.Proxy, Server: r.Route}, now.Add(-period), step)
			for _, point := range line.Points {
				row.Requests += bounded(point.Requests)
				row.Hits += bounded(point.CacheHits)
			}
		}
		if row.Requests > 0 {
			ratio := float64(row.Hits) / float64(row.Requests)
			row.Ratio = &ratio
		}
		out.Routes = append(out.Routes, row)
	}
	line := a.Control.Series().Find(metrics.Scope{Kind: metrics.ScopeCache}, now.Add(-period), step)
	out.Period = int(line.Step/time.Second) * len(line.Points)
	slices.SortStableFunc(out.Routes, func(a, b cachedRoute) int { return cmp.Compare(b.Requests, a.Requests) })
	out.Routes = out.Routes[:min(len(out.Routes), max(c.number("limit", defaultPage, maxPage), 1))]
	return out, nil
}

// usesOf returns the counts of a route, zeros for nil.
func usesOf(u *metrics.CacheUses) cacheUses {
	if u == nil {
		return cacheUses{}
	}
	of := func(use exchange.CacheUse) int64 { return bounded(u.Of(use)) }
	return cacheUses{
		Hit: of(exchange.CacheHit), Stale: of(exchange.CacheStale), Revalidated: of(exchange.CacheRevalidated),
		Collapsed: of(exchange.CacheCollapsed), Miss: of(exchange.CacheMiss), Pass: of(exchange.CachePass),
	}
}

// period reads the period until now, an hour if there is none.
func (c *call) period(limit time.Duration) (time.Duration, error) {
	text := c.text("period")
	if text == "" {
		return time.Hour, nil
	}
	period, err := time.ParseDuration(text)
	if err != nil || period < metrics.FineStep {
		return 0, refuseParameter("invalid", "period", "the duration cannot be read, or is below 10s", "write it as 15m or 24h")
	}
	return min(period, limit), nil
}

// cacheListing lists stored responses.
type cacheListing struct {
	// Entries are the stored responses in the requested order.
	Entries []cache.Stored `json:"entries"`
}

// cacheEntries lists stored responses.
func (a *API) cacheEntries(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	by := cache.Order(cmp.Or(c.text("sort"), string(cache.BySize)))
	entries, found := a.Control.Plan().CacheEntries(c.text("proxy"), by, max(c.number("limit", defaultPage, maxPage), 1))
	if name := c.text("proxy"); name != "" && !found {
		return nil, refuseParameter(operator.CodeNotFound, "proxy", "there is no such proxy with a cache", "GET /cache lists the caches")
	}
	if !c.who.Role.AtLeast(operator.Admin) {
		for i := range entries {
			entries[i].URL = hideValues(entries[i].URL)
		}
	}
	return cacheListing{entries}, nil
}

// hideValues replaces the values of all query parameters, which can be secrets such as
// signatures of links. A part without a name is replaced as a whole.
func hideValues(address string) string {
	path, query, ok := strings.Cut(address, "?")
	if !ok {
		return address
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if name, _, named := strings.Cut(part, "="); named {
			parts[i] = name + "=…"
		} else if part != "" {
			parts[i] = "…"
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// purgeInput selects what to remove from caches: one of url, prefix, tag and all.
type purgeInput struct {
	// Proxy restricts it to the caches of one proxy; the default is all.
	Proxy string `json:"proxy,omitempty" max:"128"`
	// URL removes the stored responses of one URL, for both schemes.
	URL string `json:"url,omitempty" max:"8192"`
	// Prefix takes out what is stored of addresses that begin so.
	Prefix string `json:"prefix,omitempty" max:"8192"`
	// Tag removes responses with this tag in Cache-Tag, Surrogate-Key, xkey or Cache-Groups.
	Tag string `json:"tag,omitempty" max:"1024"`
	// All removes everything.
	All bool `json:"all,omitempty"`
	// Soft marks responses as stale instead of removing them.
	Soft bool `json:"soft,omitempty"`
}

// purgeBody is what was taken out.
type purgeBody struct {
	// Purged is how many responses there were, or are in a dry run.
	Purged int `json:"purged"`
	// Caches is of how many caches.
	Caches int `json:"caches"`
}

// purge takes responses out of caches.
func (a *API) purge(c *call, in *purgeInput) (any, error) {
	q := cache.Purge{Proxy: in.Proxy, URL: in.URL, Prefix: in.Prefix, Tag: in.Tag, All: in.All, Soft: in.Soft, Count: c.dryRun}
	if err := q.Check(); err != nil {
		return nil, refuse("invalid", "", err.Error(), "")
	}
	if a.Control == nil {
		return nil, refuse("unavailable", "", "nothing is served yet", "")
	}
	purged, caches, err := a.Control.Purge(c.rq.Context(), q)
	if err != nil {
		return nil, err
	}
	if caches == 0 {
		return nil, refuse(operator.CodeNotFound, "/proxy", "there is no such cache", "")
	}
	if !c.dryRun {
		what, _ := json.Marshal(in) // texts and switches
		c.note("cache.purge", in.Proxy, string(what))
	}
	return purgeBody{purged, caches}, nil
}
