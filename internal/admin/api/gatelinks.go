package api

import (
	"net/http"
	"time"

	"headgate/internal/gate"
)

// gateLinkRows are the rows of share links.
func (a *API) gateLinkRows() []row {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []row{
		{method: get, path: "/gate/links", access: admin, area: areaAccess, out: of[gateLinkBody](), list: true, query: paging("created", "expires"), handle: a.gateLinks,
			about: "Lists the share links, without their secrets, and how many browsers use them."},
		{method: post, path: "/gate/links", access: admin, area: areaAccess, in: of[gateLinkBody](), out: of[gateLinkBody](), status: http.StatusCreated, dry: true, handle: withBody(a.createGateLink),
			about: "Creates a share link. Its address is in this response and never shown again."},
		{method: del, path: "/gate/links/{name}", access: admin, area: areaAccess, dry: true, handle: a.revokeGateLink,
			about: "Revokes a share link, including for browsers that have already opened it."},
	}
}

// gateLinkBody is a share link.
type gateLinkBody struct {
	// ID identifies the link.
	ID string `json:"id" readonly:"true"`
	// URL is what is shared: https://HOST/PATH of an application behind a gate, with
	// everything below the path.
	URL string `json:"url" required:"true" max:"2048"`
	// Expires is when the link and its visits end, at most 366 days from now.
	Expires time.Time `json:"expires" required:"true"`
	// Uses is how many times the link can still be opened; absent is any number of times.
	Uses int `json:"uses,omitempty" min:"0" max:"1000"`
	// Writes is whether requests other than GET and HEAD, and WebSockets, are allowed.
	Writes bool `json:"writes,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty" max:"1024"`
	// Link is the address to pass on. It is in the response that creates it, and nowhere
	// else.
	Link string `json:"link,omitempty" readonly:"true"`
	// Used is whether the link cannot be opened any more.
	Used bool `json:"used,omitempty" readonly:"true"`
	// Visits is how many browsers have opened it and may go on.
	Visits int `json:"visits" readonly:"true"`
	// Created is when it was created.
	Created time.Time `json:"created" readonly:"true"`
	// CreatedBy is who created it.
	CreatedBy string `json:"created_by,omitempty" readonly:"true"`
}

func showGateLink(l gate.ShownLink) gateLinkBody {
	return gateLinkBody{
		ID: l.ID, URL: l.Origin + l.Path, Expires: l.Expires, Uses: l.Uses, Writes: l.Writes, Description: l.Description,
		Used: l.Used, Visits: l.Visits, Created: l.Created, CreatedBy: l.CreatedBy,
	}
}

func (a *API) gateLinks(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	var all []listed
	for _, l := range engine.Links() {
		b := showGateLink(l)
		all = append(all, listed{name: b.ID, text: b.URL + " " + b.Description, value: b, keys: map[string]string{
			"created": b.Created.Format(time.RFC3339), "expires": b.Expires.Format(time.RFC3339)}})
	}
	return c.list(all)
}

func (a *API) createGateLink(c *call, in *gateLinkBody) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	l, address, err := engine.CreateLink(in.URL, gate.Link{Uses: in.Uses, Writes: in.Writes, Description: in.Description, Expires: in.Expires, CreatedBy: c.who.Name}, c.dryRun)
	if err != nil {
		return nil, gateProblem(err)
	}
	b := showGateLink(gate.ShownLink{Link: *l})
	b.Link = address
	if !c.dryRun {
		c.note("gate.link.create", "link "+l.ID, b.URL)
	}
	return b, nil
}

func (a *API) revokeGateLink(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	if err := engine.RevokeLink(c.name(), c.who.Name, c.dryRun); err != nil {
		return nil, gateProblem(err)
	}
	if !c.dryRun {
		c.note("gate.link.revoke", "link "+c.name(), "")
	}
	return nil, nil
}
