package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"headgate/internal/bans"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/setting/ipset"
)

// banRows are the rows of lists, countries and bans.
func (a *API) banRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: get, path: "/banned", access: viewer, area: areaBans, out: of[bans.Shown](), list: true, query: paging("since", "network", "until"), handle: a.banned,
			about: "Lists active bans, with the number of requests that each rejected on this node."},
		{method: post, path: "/banned", access: editor, area: areaBans, in: of[banInput](), out: of[bans.Shown](), status: http.StatusCreated, may: []int{409}, dry: true, handle: withBody(a.addBan),
			about: "Bans an address or a network at all proxies for a while. An IPv6 address is banned with its /64."},
		{method: post, path: "/banned/lift", access: editor, area: areaBans, in: of[liftInput](), out: of[liftBody](), may: []int{404}, dry: true, handle: withBody(a.liftBan),
			about: "Lifts all bans that have an address, or a network and those within it."},
		{method: get, path: "/banned/rules", access: viewer, area: areaBans, out: of[banRulesBody](), handle: a.banRules,
			about: "Shows the clients that each ban rule has banned, or would have banned, since it was configured; and the networks that are never banned."},
		{method: get, path: "/addresses/{name}", access: viewer, area: areaBans, out: of[addressBody](), handle: a.address,
			about: "Shows the lists and bans that contain an address, its country and its network."},
		{method: get, path: "/geo", access: viewer, area: areaBans, out: of[geoBody](), handle: a.geo,
			about: "Shows the databases of countries and networks, with what their licences ask to be shown."},
		{method: get, path: "/lists/{name}/state", access: viewer, area: areaBans, out: of[lists.State](), handle: a.listState,
			about: "Shows the state of a list: its entries, when it was loaded, and what is wrong with it."},
	}
}

// shownNetwork writes a network as people do.
func shownNetwork(n netip.Prefix) string { return bans.Display(n) }

// banInput is a ban to add.
type banInput struct {
	// Address is an address or a network, such as 203.0.113.9 or 203.0.113.0/24.
	Address string `json:"address" required:"true" max:"64"`
	// For is how long the ban lasts, such as 24h.
	For string `json:"for" required:"true" max:"32"`
	// Why is what it is for. The client gets it in no answer; the log and the audit have it.
	Why string `json:"why,omitempty" max:"256"`
	// Answer is what the client gets: `deny` answers with 403, `reject` closes new connections
	// before TLS, except for trusted proxies and addresses from which a person signed in within
	// 24 hours, which get the 403. Absent means deny.
	Answer bans.Response `json:"answer,omitempty" enum:"deny,reject"`
}

// liftInput is a ban to lift.
type liftInput struct {
	// Address is an address or a network.
	Address string `json:"address" required:"true" max:"64"`
	// Never is whether no rule is to ban the address again.
	Never bool `json:"never,omitempty"`
	// Again is whether rules may ban the address again, after never.
	Again bool `json:"again,omitempty"`
	// Why is what it is for. The audit has it.
	Why string `json:"why,omitempty" max:"256"`
}

// liftBody is what was lifted.
type liftBody struct {
	// Lifted are the bans that ended.
	Lifted []bans.Shown `json:"lifted"`
	// Never is whether no rule will ban the address again.
	Never bool `json:"never"`
}

// banRulesBody is what the ban rules have done.
type banRulesBody struct {
	// Rules are the rules by name.
	Rules []bans.RuleState `json:"rules"`
	// Never are the networks that no rule bans, by decision of an operator.
	Never []bans.Pardon `json:"never"`
	// Issues are problems that need an operator.
	Issues []bans.Issue `json:"issues"`
}

// addressBody describes an address.
type addressBody struct {
	// Address is the address.
	Address string `json:"address"`
	// Lists are the names of the lists that have it; private is the one that is part of
	// headgate.
	Lists []string `json:"lists"`
	// Bans are the bans that have it.
	Bans []bans.Shown `json:"bans"`
	// Country is its country, unknown if the database does not have it; absent without a
	// database, and for private addresses.
	Country string `json:"country,omitempty"`
	// ASN is the number of its network; absent if it is not known.
	ASN int `json:"asn,omitempty"`
	// Protected is why no rule bans it; absent if one may.
	Protected string `json:"protected,omitempty"`
}

// geoBody is the databases of countries and networks.
type geoBody struct {
	// Databases are those in use.
	Databases []geo.State `json:"databases"`
}

// banned lists bans.
func (a *API) banned(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	var all []listed
	for _, b := range a.Control.Bans().List() {
		body := b.Shown()
		all = append(all, listed{name: body.Network + " " + body.Source, text: body.Why + " " + body.Rule, value: body})
	}
	return c.list(all)
}

// networkIn reads the address of an input.
func networkIn(text, pointer string) (netip.Prefix, error) {
	n, err := ipset.Parse(strings.TrimSpace(text))
	if err != nil {
		return n, refuse("invalid", pointer, err.Error(), "write an address such as 203.0.113.9, or a network such as 203.0.113.0/24")
	}
	return n, nil
}

// maxBanTime is the longest ban by an operator.
const maxBanTime = 366 * 24 * time.Hour

// addBan bans an address.
func (a *API) addBan(c *call, in *banInput) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	n, err := networkIn(in.Address, "/address")
	if err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(in.For)
	if err != nil || d < time.Second || d > maxBanTime {
		return nil, refuse("invalid", "/for", "the duration cannot be read, or is not between 1s and 8784h", "write it as 24h")
	}
	if len(cfg.Bans) == 0 {
		return nil, refuse("not_enabled", "", "the configuration has no ban rules, so requests are not compared with bans", "add a rule under bans; one that observes is enough")
	}
	b, err := a.Control.Bans().Add(bans.Request{Network: n, Until: a.Control.Time().Add(d), Who: c.who.Name, Why: in.Why, Answer: in.Answer}, c.dryRun)
	if errors.Is(err, bans.ErrProtected) {
		return nil, refuse("protected", "/address", err.Error(), "")
	}
	if err != nil {
		return nil, err
	}
	if !c.dryRun {
		c.note("client.ban", shownNetwork(b.Network), fmt.Sprintf("for %v; %s", d, in.Why))
	}
	return b.Shown(), nil
}

// liftBan lifts bans.
func (a *API) liftBan(c *call, in *liftInput) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	n, err := networkIn(in.Address, "/address")
	if err != nil {
		return nil, err
	}
	engine := a.Control.Bans()
	out := liftBody{Lifted: []bans.Shown{}, Never: in.Never}
	for _, b := range engine.Lift(n, c.who.Name, in.Why, in.Never, c.dryRun) {
		out.Lifted = append(out.Lifted, b.Shown())
	}
	again := in.Again && (c.dryRun || engine.Unpardon(n))
	if len(out.Lifted) == 0 && !in.Never && !again {
		return nil, refuse("not_banned", "/address", shownNetwork(n)+" is not banned", "\"headgate ban list\" lists the bans")
	}
	if !c.dryRun {
		c.note("client.lift", shownNetwork(n), in.Why)
	}
	return out, nil
}

// banRules shows what the rules have done.
func (a *API) banRules(*call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	out := banRulesBody{Rules: a.Control.BanRules(), Never: a.Control.Bans().Pardons(), Issues: a.Control.Bans().Issues()}
	if out.Rules == nil {
		out.Rules = []bans.RuleState{}
	}
	if out.Never == nil {
		out.Never = []bans.Pardon{}
	}
	if out.Issues == nil {
		out.Issues = []bans.Issue{}
	}
	return out, nil
}

// address serves what is known about an address.
func (a *API) address(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	at, err := netip.ParseAddr(c.name())
	if err != nil {
		return nil, refuse("not_found", "", "not an IP address", "write one such as 203.0.113.9")
	}
	at = ipset.Plain(at)
	out := addressBody{Address: at.String(), Lists: a.Control.Lists().With(at), Bans: []bans.Shown{}}
	if ipset.Private().Contains(at) {
		out.Lists = append(out.Lists, ipset.PrivateList)
	}
	for _, b := range a.Control.Bans().Of(at) {
		out.Bans = append(out.Bans, b.Shown())
	}
	country, asn := a.Control.Located(at)
	out.Country, out.ASN = country, int(asn)
	out.Protected = a.Control.Bans().Protected(netip.PrefixFrom(at, at.BitLen()))
	return out, nil
}

// geo shows the databases.
func (a *API) geo(*call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	return geoBody{Databases: a.Control.Geo()}, nil
}

// listState shows the state of a list.
func (a *API) listState(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	for _, s := range a.Control.Lists().States() {
		if s.Name == c.name() {
			return s, nil
		}
	}
	return nil, refuse("not_found", "", "there is no such list", "")
}
