package control

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/upgrade"
)

// Status is the current status.
type Status struct {
	// State is starting before the first configuration was applied, serving, degraded
	// when an older revision is served because the documents are refused, or stopping.
	State string `json:"state"`
	// Since is when the current configuration was applied.
	Since time.Time `json:"since,omitzero"`
	// Revision is its name in the state directory.
	Revision string `json:"revision"`
	// Process is the process that serves, and the one that it replaced.
	Process upgrade.State `json:"process"`
	// Refused is why the current configuration files are rejected; nil if they are active.
	// A rejected edit is in no file.
	Refused *RefusedState `json:"refused,omitempty"`
	// Pending is the change that waits to be confirmed, nil for none.
	Pending *PendingState `json:"pending,omitempty"`
	// Admin is how to reach the admin listener; absent if it is disabled.
	Admin *AdminListener `json:"admin,omitempty"`
	// Ports are the ports by name.
	Ports []ports.State `json:"ports"`
	// TCPProxies are the active TCP proxies, by name.
	TCPProxies []StreamState `json:"tcp_proxies,omitempty"`
	// UDPProxies are the active UDP proxies, by name.
	UDPProxies []StreamState `json:"udp_proxies,omitempty"`
	// Proxies are the proxies by name, with their servers.
	Proxies []plan.ProxyState `json:"proxies"`
	// Sources are where objects come from, with what is wrong there.
	Sources []SourceState `json:"sources"`
	// Certificates are the configured certificates, then those by ACME.
	Certificates []CertificateState `json:"certificates,omitempty"`
	// ACME are the ACME certificates, by name. The API has the timelines of their orders.
	ACME []*acme.Record `json:"acme,omitempty"`
	// Lists are the lists of addresses by name, with their problems.
	Lists []lists.State `json:"lists,omitempty"`
	// Geo are the databases of countries and networks, with their problems.
	Geo []geo.State `json:"geo,omitempty"`
	// Held are the servers that operators drain or have disabled.
	Held []HeldServer `json:"held_servers,omitempty"`
	// Splits are the routes with a split.
	Splits []SplitState `json:"splits,omitempty"`
	// ECH are the ports with Encrypted Client Hello, without their records.
	ECH []ECHState `json:"ech,omitempty"`
	// Unverified are the https servers whose certificates are not checked
	// (insecure_skip_verify).
	Unverified []plan.Unverified `json:"unverified_servers,omitempty"`
}

// AdminListener is the admin listener of the configuration.
type AdminListener struct {
	// Address is its address, such as 0.0.0.0:9080.
	Address netip.AddrPort `json:"address" required:"true"`
	// PublicKey is the SHA-256 fingerprint of the public key of its certificate, as the flag
	// --fingerprint of commands accepts it; absent without TLS.
	PublicKey string `json:"public_key,omitempty"`
	// SelfSigned is whether the certificate is self-signed: then clients need the fingerprint.
	SelfSigned bool `json:"self_signed,omitempty"`
}

// adminState describes the admin listener, nil if it is disabled.
func adminState(p *plan.Plan) *AdminListener {
	s := &AdminListener{Address: p.Config().Admin.Address}
	if !s.Address.IsValid() {
		return nil
	}
	if t := p.AdminTLS(); t != nil && t.Default != nil && t.Default.Leaf != nil {
		s.PublicKey, s.SelfSigned = certs.KeyFingerprint(t.Default.Leaf), t.SelfSigned
	}
	return s
}

// SourceState is the state of a source of objects.
type SourceState struct {
	// Name is the source: configuration for the documents, discovery.docker.NAME or
	// discovery.http.NAME for a provider.
	Name string `json:"name" required:"true"`
	// State is running; error if the last version was rejected or is unavailable, and the
	// previous version is active; or, for a provider, connecting until its first response.
	State string `json:"state" required:"true"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	// Issues are its problems.
	Issues []string `json:"issues,omitempty"`
}

// RefusedState is a configuration that was refused.
type RefusedState struct {
	// Since is when it was tried.
	Since time.Time `json:"since" required:"true"`
	// Problems are the mistakes in it with their places, or what went wrong; the
	// first hundred.
	Problems []string `json:"problems" required:"true"`
}

// standing is the result of the last change for Status, so that Status never waits for a
// change. It is immutable.
type standing struct {
	since    time.Time
	revision string
	etag     string
	refused  *RefusedState
	pending  *PendingState
	degraded bool
	issues   []discovery.Issue // of discovery
	found    map[string]int    // active objects by provider
	withheld []withheldValue   // values without effect on this machine
}

// publishLocked publishes the state after a change.
func (c *Control) publishLocked() {
	s := &standing{since: c.mu.since, revision: c.mu.revision, etag: c.mu.seen, refused: c.mu.refused, degraded: c.mu.degraded}
	if p := c.mu.pending; p != nil {
		s.pending = &PendingState{Revision: fmt.Sprintf("%08d", p.Revision), Until: p.Until}
	}
	s.issues, s.found = c.issuesLocked()
	s.withheld = c.mu.host.withheld
	c.standing.Store(s)
}

// issuesLocked returns the issues of discovery, each with the time at which it was seen
// first, and the number of active objects of each provider.
func (c *Control) issuesLocked() ([]discovery.Issue, map[string]int) {
	m := c.mu.merged
	if m == nil {
		return nil, nil
	}
	now, since, issues := time.Now(), make(map[discovery.Issue]time.Time, len(m.Issues)), slices.Clone(m.Issues)
	for i := range issues {
		key := issues[i]
		key.Since = time.Time{}
		first, ok := c.mu.issues[key]
		if !ok {
			first = now
		}
		since[key], issues[i].Since = first, first
	}
	c.mu.issues = since
	found := map[string]int{}
	for name := range m.Config.Discovery.Providers() {
		found[name] = m.Count(name)
	}
	return issues, found
}

// Status returns the current status.
func (c *Control) Status() Status { return c.StatusOf("") }

// NoProxy is the name that no proxy has: for the status of all but the proxies, of which
// there may be very many.
const NoProxy = "\x00"

// StatusOf is Status with the proxy of a name only, whatever it carries, and in
// full: with the results of its servers' checks. "" is all proxies.
func (c *Control) StatusOf(proxy string) Status {
	out := Status{State: c.word(), Process: c.Process(), Ports: []ports.State{}, Proxies: []plan.ProxyState{}, Sources: []SourceState{}}
	s := c.standing.Load()
	if s == nil {
		return out
	}
	out.Since, out.Revision, out.Refused, out.Pending = s.since, s.revision, s.refused, s.pending
	out.Sources = append(out.Sources, s.configuration())
	for _, p := range c.Discovery() {
		out.Sources = append(out.Sources, p.source())
	}
	out.Ports = append(out.Ports, c.ports.States()...)
	out.Lists, out.Geo = c.lists.States(), c.geo.States()
	out.ACME = summaries(c.issuer.manager.Records())
	out.Certificates = c.CertificateStates()
	for _, s := range c.holds.list() {
		if proxy == "" || s.Proxy == proxy {
			out.Held = append(out.Held, s)
		}
	}
	for _, s := range c.splits.list() {
		if proxy == "" || s.Proxy == proxy {
			out.Splits = append(out.Splits, s)
		}
	}
	if p := c.current.Load(); p != nil {
		out.TCPProxies, out.UDPProxies = streamStates(p, proxy)
		out.Unverified = p.Unverified()
		out.Admin, out.ECH = adminState(p), c.echStates(false)
		out.Proxies = p.Proxies(proxy)
		for name, port := range p.Config().Ports {
			word := "inactive"
			if port.Active {
				word = "elsewhere"
			}
			if !port.Active || !p.Config().Here(port.Nodes) {
				out.Ports = append(out.Ports, ports.State{Name: name, Address: port.Address.String(), Protocol: port.Protocol, State: word, Nodes: port.Nodes, Since: s.since})
			}
		}
	}
	if p := c.current.Load(); p != nil {
		out.addOrigins(p.Config())
	}
	out.addIssues(c.Issues("proxies"), c.Issues("tcp_proxies"), c.Issues("udp_proxies"))
	slices.SortFunc(out.Ports, func(a, b ports.State) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), a.Since.Compare(b.Since))
	})
	return out
}

// addOrigins says where the objects come from.
func (s *Status) addOrigins(c *config.Config) {
	of := func(kind, name string) string {
		if o, ok := c.Origin(kind, name); ok {
			return o.String()
		}
		return ""
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.State != "draining" {
			p.Origin = of(kindOfPort(p.Protocol), p.Name)
		}
	}
	for i := range s.Proxies {
		s.Proxies[i].Origin = of("proxies", s.Proxies[i].Name)
	}
	for i := range s.TCPProxies {
		s.TCPProxies[i].Origin = of("tcp_proxies", s.TCPProxies[i].Name)
	}
	for i := range s.UDPProxies {
		s.UDPProxies[i].Origin = of("udp_proxies", s.UDPProxies[i].Name)
	}
}

// Issues returns the issues of the objects of a kind, such as proxies, by name: those of
// discovery, and the one of the sign-in page.
func (c *Control) Issues(kind string) map[string][]string {
	out := map[string][]string{}
	if s := c.standing.Load(); s != nil {
		for _, i := range s.issues {
			for _, o := range i.Objects() {
				if o.Kind == kind && len(out[o.Name]) < maxIssuesOfObject {
					out[o.Name] = append(out[o.Name], i.String())
				}
			}
		}
		for _, w := range s.withheld {
			if w.kind == kind && len(out[w.name]) < maxIssuesOfObject {
				out[w.name] = append(out[w.name], w.text)
			}
		}
	}
	if proxy, issue := c.signInIssue(); issue != "" && kind == "proxies" {
		out[proxy] = append(out[proxy], issue)
	}
	if kind == "proxies" {
		for _, split := range c.splits.list() {
			if issue := split.issue(); issue != "" {
				out[split.Proxy] = append(out[split.Proxy], issue)
			}
		}
	}
	return out
}

// addIssues shows the issues at the proxies that they are about.
func (s *Status) addIssues(http, tcp, udp map[string][]string) {
	for i := range s.Proxies {
		s.Proxies[i].Issues = http[s.Proxies[i].Name]
	}
	for i := range s.TCPProxies {
		s.TCPProxies[i].Issues = tcp[s.TCPProxies[i].Name]
	}
	for i := range s.UDPProxies {
		s.UDPProxies[i].Issues = udp[s.UDPProxies[i].Name]
	}
}

// maxIssuesShown is how many issues are shown at a source, and maxIssuesOfObject at an object.
const maxIssuesShown, maxIssuesOfObject = 100, 20

// source is a provider as a source.
func (p *ProviderState) source() SourceState {
	out := SourceState{Name: "discovery." + p.Type + "." + p.Name, State: string(p.State), Since: p.Since}
	if p.Reason != "" {
		out.Issues = append(out.Issues, p.Reason)
	}
	for _, i := range p.Issues[:min(len(p.Issues), maxIssuesShown)] {
		out.Issues = append(out.Issues, i.String())
	}
	if more := len(p.Issues) - maxIssuesShown; more > 0 {
		out.Issues = append(out.Issues, fmt.Sprintf("%d more issues; the API lists them under discovery", more))
	}
	return out
}

// configuration is the configuration file as a source.
func (s *standing) configuration() SourceState {
	out := SourceState{Name: "configuration", State: "running", Since: s.since}
	if s.refused != nil {
		out.State, out.Since, out.Issues = "error", s.refused.Since, s.refused.Problems
	}
	for _, w := range s.withheld {
		out.Issues = append(out.Issues, w.text)
	}
	return out
}

// word is the state of the whole.
func (c *Control) word() string {
	switch {
	case c.stopping.Load():
		return "stopping"
	case c.current.Load() == nil:
		return "starting"
	}
	if s := c.standing.Load(); s != nil && s.degraded {
		return "degraded"
	}
	return "serving"
}

// maxProblems limits the problems of a rejected configuration.
const maxProblems = 100

func refusedState(r *Refused) *RefusedState {
	s := &RefusedState{Since: time.Now()}
	for _, p := range r.Problems[:min(len(r.Problems), maxProblems)] {
		s.Problems = append(s.Problems, p.Error())
	}
	if r.Err != nil {
		s.Problems = append(s.Problems, r.Err.Error())
	}
	return s
}
