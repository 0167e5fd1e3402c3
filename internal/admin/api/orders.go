package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/operator"
)

// orderBody is the state of an ACME certificate.
type orderBody struct {
	// Name is the name of the certificate.
	Name string `json:"name"`
	// Names are the requested hosts, the wildcard first.
	Names []string `json:"names"`
	// Has are the hosts of the certificate in use.
	Has []string `json:"has"`
	// Entry is the acme entry that it is ordered under.
	Entry string `json:"entry"`
	// OnDemand is the proxy of a certificate that was ordered when a client connected.
	OnDemand string `json:"on_demand,omitempty"`
	// State is idle, preflight, blocked, pending, ready, processing, valid or failed.
	State string `json:"state"`
	// Since is when that began.
	Since time.Time `json:"since"`
	// Trouble is why there is none, for blocked and failed.
	Trouble *troubleBody `json:"trouble,omitempty"`
	// Warnings are what the last look before an order found doubtful.
	Warnings []string `json:"warnings"`
	// NextTry is when the next order or renewal is attempted.
	NextTry time.Time `json:"next_try,omitzero"`
	// Failures counts those in a row.
	Failures int `json:"failures"`
	// NotBefore is when the validity of the certificate in use began.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft *int `json:"days_left,omitempty"`
	// Directory is who issued it.
	Directory string `json:"directory,omitempty"`
	// Profile is the requested certificate profile.
	Profile string `json:"profile,omitempty"`
	// Renewal is when the authority suggests to renew.
	Renewal *renewalBody `json:"renewal,omitempty"`
	// Timeline are the last orders, the newest last, at most 20. A list leaves it out.
	Timeline []attemptBody `json:"timeline,omitempty"`
}

// troubleBody is why there is no certificate.
type troubleBody struct {
	// Code is a keyword, such as port_not_open or rate_limited.
	Code string `json:"code"`
	// Message describes the problem.
	Message string `json:"message"`
	// Hint is how to fix it, or what headgate does next.
	Hint string `json:"hint,omitempty"`
	// Problem is the problem document that the authority returned.
	Problem *authorityProblem `json:"problem,omitempty"`
}

// authorityProblem is a problem document of an authority (RFC 8555, section 6.7).
type authorityProblem struct {
	// Type is the kind, such as urn:ietf:params:acme:error:unauthorized.
	Type string `json:"type"`
	// Status is the HTTP status, 0 if it came with none.
	Status int `json:"status"`
	// Detail is the authority's own sentence.
	Detail string `json:"detail"`
	// Name is the affected host.
	Name string `json:"name,omitempty"`
	// Subproblems are those of single names.
	Subproblems []nameProblem `json:"subproblems,omitempty"`
}

// nameProblem is the authority's problem with one name.
type nameProblem struct {
	// Type is the kind.
	Type string `json:"type"`
	// Detail is the authority's description.
	Detail string `json:"detail"`
	// Name is the host.
	Name string `json:"name"`
}

// renewalBody is when an authority suggests to renew (RFC 9773).
type renewalBody struct {
	// Start is the beginning of the suggested window.
	Start time.Time `json:"start"`
	// End ends it.
	End time.Time `json:"end"`
	// At is the moment in it that was chosen.
	At time.Time `json:"at"`
	// Explanation is a page of the authority's.
	Explanation string `json:"explanation,omitempty"`
}

// attemptBody is one order from its beginning to its end.
type attemptBody struct {
	// Directory is the directory URL of the authority.
	Directory string `json:"directory"`
	// Staging means that it was a trial with a staging authority.
	Staging bool `json:"staging"`
	// Began is when the order was placed.
	Began time.Time `json:"began"`
	// Ended is when the order ended; it is absent while the order is in progress.
	Ended time.Time `json:"ended,omitzero"`
	// Issued is whether a certificate was issued.
	Issued bool `json:"issued"`
	// Trouble is why it failed.
	Trouble *troubleBody `json:"trouble,omitempty"`
	// Steps are what happened, in order. They are not kept for older orders that succeeded.
	Steps []stepBody `json:"steps,omitempty"`
}

// stepBody is one thing that happened to an order.
type stepBody struct {
	// At is when.
	At time.Time `json:"at"`
	// State is what the order was then.
	State string `json:"state"`
	// Text describes the step in a sentence.
	Text string `json:"text"`
}

// preflightBody is what a look before an order has found.
type preflightBody struct {
	// Name is what the certificate is called.
	Name string `json:"name"`
	// Blocked means that an order would fail and is not placed.
	Blocked bool `json:"blocked"`
	// Trouble is why.
	Trouble *troubleBody `json:"trouble,omitempty"`
	// Warnings are potential problems; the order may still succeed.
	Warnings []string `json:"warnings"`
	// Challenges are how the authority would be shown that the hosts are ours.
	Challenges []chosenChallenge `json:"challenges"`
}

// chosenChallenge is how an authority would be shown that a host is ours.
type chosenChallenge struct {
	// Name is the host.
	Name string `json:"name"`
	// Challenge is http-01, tls-alpn-01 or dns-01.
	Challenge string `json:"challenge"`
}

// orderRows are the rows of certificates by ACME. Those of their entries are objects of
// the configuration.
func (a *API) orderRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: get, path: "/dns_providers", access: viewer, area: areaCertificates, out: of[dnsProvidersBody](), handle: a.dnsProviders,
			about: "Lists the providers of the DNS challenge, with the names of the credentials of each."},
		{method: post, path: "/dns_providers/test", access: editor, area: areaCertificates, in: of[dnsTestInput](), out: of[dnsTested](), noDry: noDryAnswer, handle: withBody(a.testDNS),
			about: "Tests the credentials of a DNS provider for a host. Nothing is changed at the provider. Saved credentials are not sent to another provider or endpoint."},
		{method: get, path: "/orders", access: viewer, area: areaCertificates, out: of[orderBody](), list: true, query: orderQuery, handle: a.orders,
			about: "Lists the certificates issued by ACME, with their states and the reason if one is missing."},
		{method: get, path: "/orders/{name}", access: viewer, area: areaCertificates, out: of[orderBody](), handle: a.order,
			about: "Returns one ACME certificate with the timeline of its last orders. The name is that of the certificate or of a host that it covers."},
		{method: post, path: "/orders/{name}/order", may: []int{409}, access: editor, area: areaCertificates, in: of[empty](), out: of[orderBody](), status: http.StatusAccepted, dry: true, handle: withBody(a.placeOrder),
			about: "Orders a certificate now instead of waiting for the next attempt. A valid certificate is not ordered again."},
		{method: post, path: "/orders/{name}/renew", may: []int{409}, access: editor, area: areaCertificates, in: of[empty](), out: of[orderBody](), status: http.StatusAccepted, dry: true, handle: withBody(a.renewOrder),
			about: "Renews a certificate now, even if it is still valid. It counts against the authority's limits."},
		{method: post, path: "/orders/{name}/preflight", access: editor, area: areaCertificates, in: of[empty](), out: of[preflightBody](), dry: true, handle: withBody(a.preflightOrder),
			about: "Checks whether an order can succeed, without placing it."},
		{method: post, path: "/acme/{name}/rollover", may: []int{409}, access: admin, area: areaCertificates, in: of[empty](), dry: true, handle: withBody(a.rollOver),
			about: "Replaces the account key of an acme entry (RFC 8555, section 7.3.5)."},
	}
}

var orderQuery = append(paging("state", "not_after", "entry"),
	parameter{name: "state", about: "Only certificates in this state.", enum: []string{"idle", "preflight", "blocked", "pending", "ready", "processing", "valid", "failed"}},
	parameter{name: "on_demand", about: "Only certificates that were ordered on demand for this proxy."})

func (a *API) orders(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []orderBody{}}, nil
	}
	var all []listed
	for _, r := range a.Control.Orders() {
		if s := c.text("state"); s != "" && s != string(r.State) {
			continue
		}
		if p := c.text("on_demand"); p != "" && (r.Demand == nil || r.Demand.Proxy != p) {
			continue
		}
		all = append(all, listed{
			name: r.Name, text: r.Entry, value: showOrder(r.Brief()),
			keys: map[string]string{"state": string(r.State), "not_after": r.NotAfter.UTC().Format(time.RFC3339), "entry": r.Entry},
		})
	}
	return c.list(all)
}

// orderOf returns the certificate by ACME that the path names.
func (a *API) orderOf(c *call) (*acme.Record, error) {
	if a.Control != nil {
		if r := a.Control.OrderOf(c.name()); r != nil {
			return r, nil
		}
	}
	return nil, refuse(operator.CodeNotFound, "", "no certificate by ACME has this name or is for this host", "the list of /orders names all")
}

func (a *API) order(c *call) (any, error) {
	r, err := a.orderOf(c)
	if err != nil {
		return nil, err
	}
	return showOrder(r), nil
}

func (a *API) placeOrder(c *call, _ *empty) (any, error) {
	return a.startOrder(c, "acme.order", false)
}

func (a *API) renewOrder(c *call, _ *empty) (any, error) {
	return a.startOrder(c, "acme.renew", true)
}

// startOrder has a certificate ordered.
func (a *API) startOrder(c *call, action string, renew bool) (any, error) {
	r, err := a.orderOf(c)
	if err != nil {
		return nil, err
	}
	if !renew && r.State == acme.Valid {
		return nil, refuse("not_applied", "", r.Name+" is valid until "+r.NotAfter.UTC().Format(time.RFC3339), "to replace it before that, renew it")
	}
	if c.dryRun {
		if err := a.Control.CanOrder(r.Name); err != nil {
			return nil, refuse("not_applied", "", err.Error(), "look at its state")
		}
		return showOrder(r), nil
	}
	if err := a.Operators.Note(c.rq.Context(), c.who, action, r.Name, ""); err != nil {
		return nil, err
	}
	if err := a.Control.Order(r.Name); err != nil {
		return nil, refuse("not_applied", "", err.Error(), "look at its state")
	}
	return showOrder(a.Control.OrderOf(r.Name)), nil
}

// preflightTime limits the checks before an order, which query name servers and the
// authority.
const preflightTime = 45 * time.Second

func (a *API) preflightOrder(c *call, _ *empty) (any, error) {
	r, err := a.orderOf(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), preflightTime)
	defer cancel()
	found, err := a.Control.Preflight(ctx, r.Name)
	if err != nil {
		return nil, refuse("not_applied", "", err.Error(), "")
	}
	out := preflightBody{Name: r.Name, Blocked: found.Trouble != nil, Trouble: showTrouble(found.Trouble), Warnings: notNil(found.Warnings), Challenges: []chosenChallenge{}}
	for _, name := range r.Names {
		if kind, ok := found.Chosen[name]; ok {
			out.Challenges = append(out.Challenges, chosenChallenge{name, string(kind)})
		}
	}
	return out, nil
}

func (a *API) rollOver(c *call, _ *empty) (any, error) {
	if a.Control == nil {
		return nil, refuse(operator.CodeNotFound, "", "there is no such acme entry", "")
	}
	if p := a.Control.Plan(); p == nil || p.Config().ACME[c.name()] == nil {
		return nil, refuse(operator.CodeNotFound, "", "there is no such acme entry", "")
	}
	if c.dryRun {
		return nil, nil // only the authority can tell whether the key is valid
	}
	if err := a.Operators.Note(c.rq.Context(), c.who, "acme.rollover", c.name(), ""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), preflightTime)
	defer cancel()
	if err := a.Control.RollOver(ctx, c.name()); err != nil {
		return nil, refuse("not_applied", "", err.Error(), "the key in use stays")
	}
	return nil, nil
}

func showOrder(r *acme.Record) orderBody {
	b := orderBody{
		Name: r.Name, Names: notNil(r.Names), Has: notNil(r.Has), Entry: r.Entry, State: string(r.State), Since: r.Since,
		Trouble: showTrouble(r.Trouble), Warnings: notNil(r.Warnings), NextTry: r.NextTry, Failures: r.Failures,
		NotBefore: r.NotBefore, NotAfter: r.NotAfter, Directory: r.Directory, Profile: r.Profile,
	}
	if r.Demand != nil {
		b.OnDemand = r.Demand.Proxy
	}
	if !r.NotAfter.IsZero() {
		days := certs.DaysLeft(r.NotAfter, time.Now())
		b.DaysLeft = &days
	}
	if w := r.Renewal; w != nil {
		b.Renewal = &renewalBody{w.Start, w.End, w.At, w.Explanation}
	}
	for _, t := range r.Timeline {
		one := attemptBody{Directory: t.Directory, Staging: t.Staging, Began: t.Began, Ended: t.Ended, Issued: t.Issued, Trouble: showTrouble(t.Trouble)}
		for _, s := range t.Steps {
			one.Steps = append(one.Steps, stepBody{s.At, string(s.State), s.Text})
		}
		b.Timeline = append(b.Timeline, one)
	}
	return b
}

func showTrouble(t *acme.Trouble) *troubleBody {
	if t == nil {
		return nil
	}
	b := &troubleBody{Code: t.Code, Message: t.Message, Hint: t.Hint}
	if p := t.Problem; p != nil {
		b.Problem = &authorityProblem{Type: p.Type, Status: p.Status, Detail: p.Detail, Name: p.Name}
		for _, s := range p.Sub {
			b.Problem.Subproblems = append(b.Problem.Subproblems, nameProblem{s.Type, s.Detail, s.Name})
		}
	}
	return b
}

// notNil returns a list that is written as [] when it is empty.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}

// dnsProvidersBody is the providers of the DNS challenge.
type dnsProvidersBody struct {
	// Providers are all providers, by name.
	Providers []acme.ProviderFields `json:"providers"`
}

// dnsProviders lists the providers of the DNS challenge.
func (a *API) dnsProviders(*call) (any, error) {
	return dnsProvidersBody{acme.AllProviderFields()}, nil
}
