package plan

import (
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/cache"
	people "headgate/internal/gate"
	"headgate/internal/server/health"
	"headgate/internal/server/split"
	"headgate/internal/upstream"
)

// Question is a request to explain.
type Question struct {
	// Method is the request's method.
	Method string
	// Scheme and Authority are those of the URL. The port number in the
	// authority, or else the scheme's own, says which port takes the request.
	Scheme, Authority string
	// HTTP3 restricts it to the ports for HTTP/3. Without it they are considered if no
	// https port has the number.
	HTTP3 bool
	// Target is path and query as a client sends them.
	Target string
	// Fields are further header fields, name and value.
	Fields [][2]string
	// From is the client's address; not valid means 127.0.0.1.
	From netip.Addr
	// As is the person or token for which a gate decides; nil is a client without a session.
	As *people.Rehearsed
	// Fetch sends one request to a server if the route has a cache, to explain whether the
	// response is stored. Nothing is stored.
	Fetch bool
}

// Explanation is how a request would be handled.
type Explanation struct {
	// Port is the port that receives the request, "" if there is none.
	Port string `json:"port,omitempty"`
	// Address is what it listens on.
	Address string `json:"address,omitempty"`
	// Certificate is what clients of the host get on a port with TLS; nil on others.
	Certificate *Chosen `json:"certificate,omitempty"`
	// PublicName is the name that clients with Encrypted Client Hello show in place of the
	// host; "" if the port or the host does not hide it.
	PublicName string `json:"public_name,omitempty"`
	// Notes are what was assumed, and hints.
	Notes []string `json:"notes,omitempty"`
	// Host is the normalized host.
	Host string `json:"host" required:"true"`
	// Class is the kind of virtual host that matches: exact, wildcard, regex or any; "" if
	// none does.
	Class string `json:"class,omitempty"`
	// Asked is the path as the client wrote it.
	Asked string `json:"asked" required:"true"`
	// Path is the normalized path that is matched.
	Path string `json:"path,omitempty"`
	// Proxy is the proxy that handles the request, "" if there is none.
	Proxy string `json:"proxy,omitempty"`
	// Route is the route that handles the request, "" if there is none.
	Route string `json:"route,omitempty"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// Features lists the origin of each feature of the route: the route, the proxy, a
	// policy or the defaults.
	Features []config.FeatureOrigin `json:"features,omitempty"`
	// Client is the client's address, as the filters of the route determine it.
	Client string `json:"client_ip,omitempty"`
	// Peer is the address of the connection. It differs from Client behind a trusted
	// proxy.
	Peer string `json:"peer,omitempty"`
	// Filters are the route's filters in their order.
	Filters []string `json:"filters,omitempty"`
	// Source is what creates the response.
	Source string `json:"source,omitempty"`
	// Cache is what the route's cache makes of the request.
	Cache *cache.Outcome `json:"cache,omitempty"`
	// Stores is whether the cache stores the response that a server sends now, if one was
	// requested.
	Stores *cache.Diagnosis `json:"stores,omitempty"`
	// Retry is what happens when a server fails.
	Retry string `json:"retry,omitempty"`
	// Split is the group of servers that gets the request; nil without a split.
	Split *SplitDecision `json:"split,omitempty"`
	// Balance is the route's load_balancing.
	Balance string `json:"load_balancing,omitempty"`
	// Servers are the candidates, each with the head that it would get.
	Servers []Candidate `json:"servers,omitempty"`
	// Gate is what the gate of the route decides for the person or token in question.
	Gate *GateDecision `json:"gate,omitempty"`
	// Answer is the response that is made without a server.
	Answer *Answered `json:"answer,omitempty"`
	// Routes are all routes whose virtual hosts have the host, the winner
	// first, with the reason for the others.
	Routes []Contender `json:"routes" required:"true"`
	// Others is the number of routes for other hosts.
	Others int `json:"other_hosts" required:"true"`
}

// GateDecision is what a gate decides for a person or token.
type GateDecision struct {
	// As is the person or token, as allow names it.
	As string `json:"as" required:"true"`
	// In is whether the request passes.
	In bool `json:"in" required:"true"`
	// Rule is the entry that lets it pass, or why it does not pass.
	Rule string `json:"rule" required:"true"`
	// Session describes the session that a person has: its cookie, and when it is checked again
	// with the provider.
	Session string `json:"session,omitempty"`
}

// Candidate is a server that may get the request.
type Candidate struct {
	// URL is the server's address.
	URL string `json:"url" required:"true"`
	// Weight is the server's share of Total.
	Weight int `json:"weight" required:"true"`
	// Total is the sum of the weights.
	Total int `json:"total" required:"true"`
	// Group is the group of the server on a route with a split, or "".
	Group string `json:"group,omitempty"`
	// Pinned is whether the sticky cookie of the request names the server.
	Pinned bool `json:"pinned,omitempty"`
	// Head is the request head that the server gets, byte for byte.
	Head string `json:"head"`
	// Backup is whether the server is used only if no other is available.
	Backup bool `json:"backup,omitempty"`
	// State is its state, "" if nothing is wrong.
	State string `json:"state,omitempty"`
	// Chosen is true for the server that gets the request, when the route's
	// load_balancing always sends such requests to the same one.
	Chosen bool `json:"chosen,omitempty"`
}

// SplitDecision is the group of a request.
type SplitDecision = upstream.SplitDecision

// Answered is a response that is made without a server.
type Answered struct {
	// By is the filter or source that responds.
	By string `json:"by" required:"true"`
	// Status is the status of the response.
	Status int `json:"status" required:"true"`
	// Reason is the reason in the access log.
	Reason string `json:"reason,omitempty"`
	// Cause is what went wrong.
	Cause string `json:"cause,omitempty"`
	// Location is where a redirect leads to.
	Location string `json:"location,omitempty"`
}

// Contender is a route that could take the request by its host.
type Contender struct {
	// Proxy is the proxy of the route.
	Proxy string `json:"proxy" required:"true"`
	// Route is the route with its matchers.
	Route string `json:"route" required:"true"`
	// Won is true for the route that takes the request.
	Won bool `json:"won" required:"true"`
	// Why is why it won or lost.
	Why string `json:"why" required:"true"`
}

// Explain returns how the plan would handle a request. It uses the functions that serve
// requests, and sends nothing unless q.Fetch is set. Values of ${file:…} are shown as this reference.
func (p *Plan) Explain(q Question) Explanation {
	e := p.explain(q)
	if m := p.config.Masker(); m != nil {
		e.mask(m)
	}
	return e
}

// mask takes secrets out of an explanation.
func (e *Explanation) mask(m *strings.Replacer) {
	for i := range e.Servers {
		s := &e.Servers[i]
		s.URL, s.Head = m.Replace(s.URL), m.Replace(s.Head)
	}
	if a := e.Answer; a != nil {
		a.Cause, a.Location = m.Replace(a.Cause), m.Replace(a.Location)
	}
	if d := e.Stores; d != nil {
		d.Why, d.Field = m.Replace(d.Why), m.Replace(d.Field)
	}
	for i := range e.Notes {
		e.Notes[i] = m.Replace(e.Notes[i])
	}
}

func (p *Plan) explain(q Question) Explanation {
	e := Explanation{Asked: q.Target, Routes: []Contender{}}
	if i := strings.IndexByte(e.Asked, '?'); i >= 0 {
		e.Asked = e.Asked[:i]
	}
	port := p.portFor(q, &e)
	if port == nil {
		e.refused("listen", nil)
		return e
	}
	e.Port, e.Address = port.Name(), port.Address().String()
	if port.tls != nil {
		host := hostName(q.Authority, new(exchange.Text))
		chosen := p.demanded(p.chosenOn(port.Name(), port.tls, host), port.tls, host)
		e.Certificate = &chosen
		e.PublicName = port.hides(host)
	}
	ex, answer := port.read(q)
	if answer != nil {
		e.refused("http", answer)
		return e
	}
	e.Host = hostName(ex.Request.Host, &ex.Text)
	r, answer := port.selectRoute(ex)
	e.Host = hostName(ex.Request.Host, &ex.Text)
	if answer == nil || answer.Reason == exchange.NoRoute || answer.Reason == exchange.AmbiguousPath || answer.Reason == exchange.MethodRefused {
		e.Path = strings.Clone(ex.Request.Path)
		p.contenders(port, r, ex, &e)
	}
	if answer != nil {
		e.refusedBefore(port, ex, answer)
		return e
	}
	e.Proxy, e.Route = r.proxy.Name, r.label
	if o, ok := p.config.Origin("proxies", e.Proxy); ok {
		e.Origin = o.String()
	}
	e.Features = p.config.FeatureOrigins(e.Proxy, r.number)
	if r.pipeline.Alternative != nil {
		e.Notes = append(e.Notes, "Alt-Svc announces HTTP/3 on port "+port.quic.Name()+" while that port listens")
	} else if port.quic != nil {
		e.Notes = append(e.Notes, "port "+port.quic.Name()+" has the number too, for HTTP/3; Alt-Svc does not announce it")
	}
	if q.As != nil {
		people.Rehearse(ex, q.As)
	}
	r.explain(ex, &e, q.Fetch)
	if q.As != nil {
		e.Gate = &GateDecision{As: q.As.Name(), In: q.As.In, Rule: q.As.Rule, Session: q.As.Session}
		if !q.As.Decided {
			*e.Gate = GateDecision{As: q.As.Name(), In: r.allow == nil, Rule: "no gate has decided: the route has none, or another filter answers first"}
		}
	}
	return e
}

// refused notes an answer that was made without a server.
func (e *Explanation) refused(by string, answer *exchange.Answer) {
	e.Answer = &Answered{By: by}
	if answer == nil {
		return
	}
	e.Answer.Status, e.Answer.Reason, e.Answer.Cause = answer.Status, answer.Reason.String(), answer.Cause
	if e.Answer.Status == 0 {
		e.Answer.Status = answer.Reason.Status()
	}
	e.Answer.Location = strings.Clone(locationOf(answer))
}

// explain rehearses the pipeline of a route, and records where it ends.
func (r *Route) explain(ex *exchange.Exchange, e *Explanation, fetch bool) {
	defer func() {
		e.Client, e.Peer = ex.ClientIP.String(), ex.Conn.Peer
		e.Notes = append(e.Notes, ex.Notes...)
	}()
	e.Source = r.source.Describe()
	for i := range r.filters {
		e.Filters = append(e.Filters, r.filters[i].Name)
	}
	if answer, by := r.pipeline.Rehearse(ex); answer != nil {
		e.refused(by, answer)
		return
	}
	if r.servers == nil {
		if answer := r.source.Respond(ex); answer != nil {
			e.refused(e.Source, answer)
			return
		}
		e.answered(ex)
		return
	}
	if r.cache != nil {
		if fetch {
			diagnosis := r.cache.Diagnose(ex)
			e.Stores = &diagnosis
		}
		outcome := r.cache.Explain(ex)
		if e.Cache = &outcome; outcome.Answered {
			e.Answer = &Answered{By: "cache", Status: outcome.Status}
			if outcome.Status == 0 {
				e.refused("cache", exchange.Fail(exchange.NotCached, ""))
			}
			return
		}
	}
	if r.scripts != nil {
		if scripted, answer := r.scripts.Find(ex); answer != nil {
			e.refused(e.Source, answer)
			return
		} else if !scripted {
			e.answered(ex)
			return
		}
	}
	e.Retry = r.servers.Retries(ex)
	e.Balance = r.settings.LoadBalancing
	if r.split == nil {
		e.addServers(ex, r.servers, "")
		return
	}
	decided := r.split.Decided(ex)
	e.Split = &decided
	for _, g := range []split.Group{split.Stable, split.Candidate} {
		if decided.Certain && g.String() != decided.Group {
			continue
		}
		e.addServers(ex, r.split.Servers(g), g.String())
	}
}

// addServers adds the servers of a group, each with the head that it would get.
func (e *Explanation) addServers(ex *exchange.Exchange, of *upstream.Servers, group string) {
	chosen := of.Likely(ex)
	total := map[bool]int{} // of the backup servers, and of the others
	for _, s := range of.List() {
		total[s.Backup] += s.Weight
	}
	for i, s := range of.List() {
		head := upstream.AppendShown(nil, ex, s, of.Host())
		c := Candidate{URL: s.URL, Weight: s.Weight, Total: total[s.Backup], Pinned: of.Pinned(ex) == i, Group: group, Head: string(head)}
		c.Backup, c.Chosen = s.Backup, i == chosen && len(of.List()) > 1
		stands := s.Standing()
		if word := stands.Word(); word != health.Unknown.String() && word != health.Healthy.String() {
			c.State = word
		}
		e.Servers = append(e.Servers, c)
	}
}

// answered notes the response that the source of a route has made.
func (e *Explanation) answered(ex *exchange.Exchange) {
	e.Answer = &Answered{By: e.Source, Status: ex.Response.Status}
	if body := ex.Response.Body; body != nil {
		body.Close()
	}
}

// sortRoutes puts the winner first, then by proxy and route.
func (e *Explanation) sortRoutes() {
	slices.SortStableFunc(e.Routes, func(a, b Contender) int {
		switch {
		case a.Won:
			return -1
		case b.Won:
			return 1
		}
		return 0
	})
}
