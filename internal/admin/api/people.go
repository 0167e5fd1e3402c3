package api

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/gate"
	"headgate/internal/gate/people"
	"headgate/internal/operator"
	"headgate/internal/passkey"
	"headgate/internal/store"
)

// peopleRows are the rows of people who sign in at applications, and of their sessions.
func (a *API) peopleRows() []row {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	created := http.StatusCreated
	return []row{
		{method: get, path: "/gate", access: viewer, area: areaAccess, out: of[accessBody](), handle: a.access,
			about: "Shows how people sign in: the sign-in host, the addresses to register at providers, and how many people, sessions and passkeys there are."},
		{method: get, path: "/people", access: viewer, area: areaAccess, out: of[personBody](), list: true, query: paging("name", "email", "created", "signed_in"), handle: a.people,
			about: "Lists the people that headgate stores."},
		{method: post, path: "/people", may: []int{409}, access: admin, area: areaAccess, in: of[personBody](), out: of[personBody](), status: created, dry: true, handle: withBody(a.addPerson),
			about: "Adds a person, who sets up credentials through an invitation."},
		{method: get, path: "/people/{name}", access: viewer, area: areaAccess, out: of[personBody](), handle: a.person,
			about: "Returns one person."},
		{method: put, path: "/people/{name}", may: []int{409}, access: admin, area: areaAccess, in: of[personBody](), out: of[personBody](), match: true, dry: true, handle: withBody(a.putPerson),
			about: "Replaces a person. A change of groups applies to open sessions at once; the sessions of a disabled person end."},
		{method: patch, path: "/people/{name}", may: []int{409}, access: admin, area: areaAccess, in: of[personBody](), out: of[personBody](), match: true, dry: true, current: a.person, handle: withBody(a.putPerson),
			about: "Updates the fields of a person that are in the body (RFC 7396)."},
		{method: del, path: "/people/{name}", access: admin, area: areaAccess, match: true, dry: true, handle: a.removePerson,
			about: "Removes a person and ends their sessions."},
		{method: post, path: "/people/{name}/invitation", access: admin, area: areaAccess, in: of[inviteInput](), out: of[inviteBody](), status: created, dry: true, handle: withBody(a.invitePerson),
			about: "Creates an invitation link, with which a person sets up credentials once. An earlier link stops working. The link is in this response only."},
		{method: del, path: "/people/{name}/invitation", access: admin, area: areaAccess, dry: true, handle: a.withdrawInvitation,
			about: "Revokes the invitation link of a person."},
		{method: post, path: "/people/{name}/reset", access: admin, area: areaAccess, in: of[inviteInput](), out: of[inviteBody](), status: created, dry: true, handle: withBody(a.resetPerson),
			about: "Removes the password, authenticator and passkeys of a person, ends their sessions, and creates an invitation link."},
		{method: get, path: "/gate/groups", access: viewer, area: areaAccess, out: of[groupBody](), list: true, query: paging("name"), handle: a.peopleGroups,
			about: "Lists the groups that headgate stores, with their members."},
		{method: get, path: "/gate/sessions", access: viewer, area: areaAccess, out: of[personSession](), list: true, query: paging("created", "seen", "person"), handle: a.personSessions,
			about: "Lists the sessions of people at applications, including those of people from providers."},
		{method: del, path: "/gate/sessions", access: admin, area: areaAccess, out: of[endedBody](), may: []int{404}, dry: true, query: sessionsOf, handle: a.endPersonSessions,
			about: "Ends all sessions of a person. Open WebSockets and other long exchanges are closed. The person can sign in again."},
		{method: del, path: "/gate/sessions/{name}", access: admin, area: areaAccess, dry: true, handle: a.endPersonSession,
			about: "Ends a session at all its applications. Open WebSockets and other long exchanges are closed."},
		{method: get, path: "/gate/openings", access: viewer, area: areaAccess, out: of[gate.Opening](), list: true, query: paging("host"), handle: a.openings,
			about: "Lists the hosts whose gate is temporarily open to everyone."},
		{method: post, path: "/gate/openings", access: admin, area: areaAccess, in: of[openingInput](), out: of[gate.Opening](), status: created, may: []int{404}, dry: true, handle: withBody(a.openGate),
			about: "Opens the gate of a host to everyone for a limited time, for example while a provider is down. Servers get no identity headers for clients without a session."},
		{method: del, path: "/gate/openings/{name}", access: admin, area: areaAccess, dry: true, handle: a.closeGate,
			about: "Closes the gate of a host again."},
	}
}

// personBody is a person who is kept by headgate.
type personBody struct {
	// Name is what the person signs in with: 1 to 64 lower-case letters, digits and . _ -. It
	// cannot be changed. Servers get it as Remote-User.
	Name string `json:"name" required:"true" max:"64"`
	// FullName is for people to read.
	FullName string `json:"full_name,omitempty" max:"256"`
	// Email is the person's address. The person can sign in with it.
	Email string `json:"email,omitempty" max:"256"`
	// Groups are the person's groups, which allow names as group:NAME.
	Groups []string `json:"groups,omitempty" max:"100"`
	// Disabled is whether the person cannot sign in.
	Disabled bool `json:"disabled"`
	// Password is whether the person has a password and an authenticator.
	Password bool `json:"password" readonly:"true"`
	// RecoveryCodes is how many recovery codes are left.
	RecoveryCodes int `json:"recovery_codes" readonly:"true"`
	// Passkeys are the person's passkeys.
	Passkeys []passkey.Passkey `json:"passkeys,omitempty" readonly:"true"`
	// Sessions is how many sessions the person has.
	Sessions int `json:"sessions" readonly:"true"`
	// Created is when the person was added.
	Created time.Time `json:"created" readonly:"true"`
	// SignedIn is when the person signed in last.
	SignedIn time.Time `json:"signed_in,omitzero" readonly:"true"`
	// Invited is when an invitation that was not used yet expires.
	Invited time.Time `json:"invited,omitzero" readonly:"true"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty" readonly:"true"`

	at store.Revision
}

func (p personBody) revision() store.Revision { return p.at }

func showPerson(p people.Person, sessions map[string]int) personBody {
	b := personBody{
		Name: p.Name, FullName: p.FullName, Email: p.Email, Groups: p.Groups, Disabled: p.Disabled, Password: p.Password, RecoveryCodes: p.RecoveryCodes,
		Passkeys: p.Passkeys, Sessions: sessions[people.Provider+"/"+p.Name], Created: p.Created, SignedIn: p.SignedIn, Invited: p.Invited, at: p.Revision,
	}
	if p.Revision > 0 {
		b.ETag = tag(p.Revision)
	}
	return b
}

// keptPeople returns the people who are kept by headgate.
func (a *API) keptPeople() (*people.People, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	return engine.People(), nil
}

// sessionCounts returns how many sessions each person has, by the id of the person.
func (a *API) sessionCounts() map[string]int {
	count := map[string]int{}
	for _, s := range a.Control.Gate().Sessions() {
		count[s.Person().ID]++
	}
	return count
}

// asPeople returns an operator as the one who changes people.
func asPeople(i operator.Identity) people.By { return people.By{Name: i.Name, Audit: i.Audit} }

func (b *personBody) details() people.Details {
	return people.Details{FullName: b.FullName, Email: b.Email, Groups: b.Groups, Disabled: b.Disabled}
}

func (a *API) people(c *call) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	all, err := kept.List(c.rq.Context())
	if err != nil {
		return nil, err
	}
	entries, sessions := make([]listed, 0, len(all)), a.sessionCounts()
	for _, p := range all {
		entries = append(entries, listed{name: p.Name, text: p.FullName + " " + p.Email + " " + strings.Join(p.Groups, " "), value: showPerson(p, sessions),
			keys: map[string]string{"name": p.Name, "email": p.Email, "created": p.Created.Format(time.RFC3339), "signed_in": p.SignedIn.Format(time.RFC3339)}})
	}
	return c.list(entries)
}

func (a *API) person(c *call) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	p, err := kept.Person(c.rq.Context(), c.name())
	if err != nil {
		return nil, err
	}
	return showPerson(p, a.sessionCounts()), nil
}

func (a *API) addPerson(c *call, in *personBody) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	p, err := kept.Create(c.rq.Context(), asPeople(c.who), in.Name, in.details(), c.dryRun)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", Prefix+"/people/"+p.Name)
	return showPerson(p, a.sessionCounts()), nil
}

func (a *API) putPerson(c *call, in *personBody) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	if in.Name != c.name() {
		return nil, refuse("invalid", "/name", "the name of a person cannot be changed", "add another person")
	}
	p, err := kept.Change(c.rq.Context(), asPeople(c.who), in.Name, c.have, in.details(), c.dryRun)
	if err != nil {
		return nil, c.late(err, a.person)
	}
	return showPerson(p, a.sessionCounts()), nil
}

func (a *API) removePerson(c *call) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	return nil, c.late(kept.Remove(c.rq.Context(), asPeople(c.who), c.name(), c.have, c.dryRun), a.person)
}

// inviteInput says how long a link can be used.
type inviteInput struct {
	// For is how long the link can be used, such as 72h, which is the default. It is between
	// 1m and 720h.
	For string `json:"for,omitempty" max:"32"`
}

// inviteBody is a link that was made.
type inviteBody struct {
	// Link is the address for the person. It is shown once; absent in a dry run, and while the
	// configuration has no sign-in page.
	Link string `json:"link,omitempty"`
	// Path is the path of the link at the sign-in page; absent in a dry run.
	Path string `json:"path,omitempty"`
	// Expires is until when it can be used.
	Expires time.Time `json:"expires"`
}

func (a *API) invitePerson(c *call, in *inviteInput) (any, error) {
	return a.invite(c, in, (*people.People).Invite)
}

func (a *API) resetPerson(c *call, in *inviteInput) (any, error) {
	return a.invite(c, in, (*people.People).Reset)
}

// inviting is one of the ways in which a link is made.
type inviting func(*people.People, context.Context, people.By, string, time.Duration, bool) (string, time.Time, error)

func (a *API) invite(c *call, in *inviteInput, do inviting) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(cmp.Or(in.For, people.InvitationAge.String()))
	if err != nil {
		return nil, refuse("invalid", "/for", "the duration cannot be read", "write it as 72h")
	}
	secret, expires, err := do(kept, c.rq.Context(), asPeople(c.who), c.name(), d, c.dryRun)
	if err != nil {
		return nil, err
	}
	out := inviteBody{Expires: expires}
	if secret != "" {
		out.Path = "/invite?link=" + secret
		if origin := a.Control.Gate().SignInOrigin("", ""); origin != "" {
			out.Link = origin + out.Path
		}
	}
	return out, nil
}

func (a *API) withdrawInvitation(c *call) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	return nil, kept.Withdraw(c.rq.Context(), asPeople(c.who), c.name(), c.dryRun)
}

// groupBody is a group of people.
type groupBody struct {
	// Name is the group's name. allow names it as group:NAME.
	Name string `json:"name"`
	// Members are the names of the people in it.
	Members []string `json:"members"`
	// Proxies are the proxies with a gate that names the group.
	Proxies []string `json:"proxies"`
}

func (a *API) peopleGroups(c *call) (any, error) {
	kept, err := a.keptPeople()
	if err != nil {
		return nil, err
	}
	all, err := kept.List(c.rq.Context())
	if err != nil {
		return nil, err
	}
	groups := map[string]*groupBody{}
	group := func(name string) *groupBody {
		if groups[name] == nil {
			groups[name] = &groupBody{Name: name, Members: []string{}, Proxies: []string{}}
		}
		return groups[name]
	}
	for _, p := range all {
		for _, g := range p.Groups {
			group(g).Members = append(group(g).Members, p.Name)
		}
	}
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	for _, name := range cfg.GateNames() {
		for _, text := range cfg.Allowed(name) {
			if e, err := gate.ParseEntry(text); err == nil && e.Kind == "group" && e.Provider == people.Provider {
				g := group(e.Name)
				g.Proxies = append(g.Proxies, name)
			}
		}
	}
	var entries []listed
	for name, g := range groups {
		slices.Sort(g.Proxies)
		g.Proxies = slices.Compact(g.Proxies)
		entries = append(entries, listed{name: name, value: *g, keys: map[string]string{"name": name}})
	}
	slices.SortFunc(entries, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
	return c.list(entries)
}

// accessBody is how people sign in.
type accessBody struct {
	// Configured is whether people can sign in at all.
	Configured bool `json:"configured"`
	// Local is whether people who are kept by headgate can sign in.
	Local bool `json:"local"`
	// Page is the address of the sign-in page; absent without one.
	Page string `json:"page,omitempty"`
	// Redirects are the addresses to register at providers.
	Redirects []redirectBody `json:"redirects"`
	// People is the number of people kept by headgate.
	People int `json:"people"`
	// Sessions is the number of sessions of all people.
	Sessions int `json:"sessions"`
	// Passkeys is the number of passkeys.
	Passkeys int `json:"passkeys"`
	// LostPasskeys is the number of passkeys that were created at another sign-in host,
	// where they work only.
	LostPasskeys int `json:"lost_passkeys"`
	// Gated are the proxies with a gate.
	Gated []string `json:"gated"`
	// Gates are the rules of their gates, in the same order.
	Gates []gateBody `json:"gates"`
}

// gateBody is what the gates of a proxy let pass.
type gateBody struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Hosts are its virtual hosts.
	Hosts []string `json:"hosts"`
	// Allow are the people and tokens that its gates let in.
	Allow []string `json:"allow"`
	// Bypasses are the requests that need no sign-in, in words: those of bypass, addresses in
	// from, and routes on which the gate is off.
	Bypasses []string `json:"bypasses"`
}

// gateBodies returns what the gates of a configuration let pass.
func gateBodies(cfg *config.Config) []gateBody {
	out := []gateBody{}
	for _, name := range cfg.GateNames() {
		p := cfg.Proxies[name]
		allow := cfg.Allowed(name)
		slices.Sort(allow)
		b := gateBody{Proxy: name, Hosts: append([]string{}, p.VirtualHosts...), Allow: slices.Compact(allow), Bypasses: p.GateBypasses()}
		if b.Bypasses == nil {
			b.Bypasses = []string{}
		}
		out = append(out, b)
	}
	return out
}

// redirectBody is an address to register at a provider.
type redirectBody struct {
	// Provider is the name of the provider.
	Provider string `json:"provider"`
	// URI is the redirect URI.
	URI string `json:"uri"`
	// AfterCutover is whether it is needed only when headgate has the usual port.
	AfterCutover bool `json:"after_cutover"`
}

func (a *API) access(*call) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	engine := a.Control.Gate()
	sessions, _, _ := engine.Counts()
	out := accessBody{
		Configured: cfg.SignIn.Configured(), Local: cfg.SignIn.Local, Page: engine.SignInOrigin("", ""), Redirects: []redirectBody{},
		People: engine.People().Count(), Sessions: sessions, Gated: cfg.GateNames(), Gates: gateBodies(cfg),
	}
	out.Passkeys, out.LostPasskeys = engine.Passkeys()
	for _, r := range engine.Redirects() {
		out.Redirects = append(out.Redirects, redirectBody(r))
	}
	return out, nil
}

// openingInput says which gate to open.
type openingInput struct {
	// Host is the host of the application.
	Host string `json:"host" required:"true" max:"253"`
	// For is how long, such as 10m; at most 24h.
	For string `json:"for" required:"true" max:"32"`
	// Why is what it is for. The audit has it.
	Why string `json:"why,omitempty" max:"256"`
}

func (a *API) openings(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	var entries []listed
	for _, o := range engine.Openings() {
		entries = append(entries, listed{name: o.Host, text: o.Who + " " + o.Why, value: o, keys: map[string]string{"host": o.Host}})
	}
	return c.list(entries)
}

func (a *API) openGate(c *call, in *openingInput) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(in.For)
	if err != nil || d < time.Second || d > gate.MaxOpening {
		return nil, refuse("invalid", "/for", "the duration cannot be read, or is not between 1s and 24h", "write it as 10m")
	}
	host := strings.ToLower(strings.TrimSuffix(in.Host, "."))
	if !a.gatedHost(host) {
		return nil, refuse("not_found", "", "no proxy with a gate has the host "+host, "set gate for the proxy of the host or for one of its routes")
	}
	o, err := engine.Open(host, d, c.who.Name, in.Why, c.who.Audit, c.dryRun)
	if err != nil {
		return nil, refuse("unavailable", "", "the gate cannot be opened: "+err.Error(), "try again")
	}
	return o, nil
}

// gatedHost reports whether an application with a gate has a host.
func (a *API) gatedHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	for _, p := range a.Control.Plan().Config().GatedHosts() {
		if suffix, wild := strings.CutPrefix(p, "*"); p == host || wild && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func (a *API) closeGate(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	found, err := engine.CloseOpening(c.name(), c.who.Name, c.who.Audit, c.dryRun)
	if err != nil {
		return nil, refuse("unavailable", "", "the gate cannot be closed: "+err.Error(), "try again")
	}
	if !found {
		return nil, refuse("not_found", "", "the gate of the host is not open", "\"headgate gate list\" lists those that are")
	}
	return nil, nil
}
