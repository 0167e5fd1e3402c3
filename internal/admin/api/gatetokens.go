package api

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"headgate/internal/gate"
	"headgate/internal/operator"
)

// gateTokenRows are the rows of tokens of applications behind a gate.
func (a *API) gateTokenRows() []row {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []row{
		{method: get, path: "/gate/tokens", access: admin, area: areaAccess, out: of[gateTokenBody](), list: true, query: paging("name", "created", "used"), handle: a.gateTokens,
			about: "Lists the tokens with which applications pass a gate, without their text."},
		{method: post, path: "/gate/tokens", may: []int{409}, access: admin, area: areaAccess, in: of[gateTokenBody](), out: of[gateTokenBody](), status: http.StatusCreated, dry: true, handle: withBody(a.createGateToken),
			about: "Creates a token for an application. Its text is in this response and never shown again."},
		{method: get, path: "/gate/tokens/{name}", access: admin, area: areaAccess, out: of[gateTokenBody](), handle: a.gateToken,
			about: "Returns one token of an application, without its text."},
		{method: del, path: "/gate/tokens/{name}", access: admin, area: areaAccess, dry: true, handle: a.revokeGateToken,
			about: "Revokes a token of an application. Connections that use it are closed within two seconds on all machines."},
	}
}

// gateTokenBody is a token of an application.
type gateTokenBody struct {
	// Name identifies the token: 1 to 64 lower-case letters, digits and . _ @ -. A gate
	// accepts it by token:NAME in its allow list.
	Name string `json:"name" required:"true" max:"64"`
	// Description is for people.
	Description string `json:"description,omitempty" max:"1024"`
	// Person is the person that the token belongs to: an e-mail address or PROVIDER/ID of
	// someone with a session. Gates that let the person in accept the token, and servers
	// learn who the person is. Absent makes a token that only token:NAME lets in.
	Person string `json:"person,omitempty" max:"512"`
	// Proxies are the names of the proxies at which the token counts; absent is all.
	Proxies []string `json:"proxies,omitempty" max:"64"`
	// Paths are the paths below which the token counts; absent is all.
	Paths []string `json:"paths,omitempty" max:"64"`
	// Expires is when the token ends; absent is never.
	Expires time.Time `json:"expires,omitzero"`
	// Token is the text of the token. It is in the response that creates it, and nowhere
	// else.
	Token string `json:"token,omitempty" readonly:"true"`
	// Created is when it was created.
	Created time.Time `json:"created" readonly:"true"`
	// CreatedBy is who created it.
	CreatedBy string `json:"created_by,omitempty" readonly:"true"`
	// Used is when it was used last.
	Used time.Time `json:"used,omitzero" readonly:"true"`
	// UsedFrom is the address that it was used from.
	UsedFrom string `json:"used_from,omitempty" readonly:"true"`
}

func showGateToken(t *gate.Token) gateTokenBody {
	b := gateTokenBody{Name: t.Name, Description: t.Description, Proxies: t.Proxies, Paths: t.Paths, Expires: t.Expires, Created: t.Created, CreatedBy: t.CreatedBy}
	if t.Person != nil {
		b.Person = t.Person.ID
	}
	var from netip.Addr
	b.Used, from = t.Seen()
	if !b.Used.IsZero() {
		b.Used = b.Used.UTC().Truncate(time.Second)
	}
	if from.IsValid() {
		b.UsedFrom = from.String()
	}
	return b
}

// gate returns the engine of gates, which only a running process has.
func (a *API) gate() (*gate.Engine, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	return a.Control.Gate(), nil
}

// gateProblem turns an error of the engine of gates into a refusal.
func gateProblem(err error) error {
	var wrong *gate.Invalid
	switch {
	case errors.As(err, &wrong):
		return refuse(operator.CodeInvalid, "/"+wrong.Field, wrong.Detail, wrong.Remedy)
	case errors.Is(err, gate.ErrExists):
		return refuse(operator.CodeExists, "/name", err.Error(), "choose another name")
	case errors.Is(err, gate.ErrNotFound):
		return refuse(operator.CodeNotFound, "", err.Error(), "")
	case errors.Is(err, gate.ErrTooMany):
		return refuse(operator.CodeInvalid, "", err.Error(), "remove some")
	case errors.Is(err, gate.ErrUnavailable):
		return &operator.Error{Code: operator.CodeOverloaded, Detail: err.Error(), Remedy: "try again", RetryAfter: time.Second}
	}
	return err
}

func (a *API) gateTokens(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	var all []listed
	for _, t := range engine.Tokens() {
		b := showGateToken(t)
		all = append(all, listed{name: b.Name, text: b.Description + " " + b.Person, value: b, keys: map[string]string{
			"name": b.Name, "created": b.Created.Format(time.RFC3339), "used": b.Used.Format(time.RFC3339)}})
	}
	return c.list(all)
}

func (a *API) gateToken(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	t := engine.TokenNamed(c.name())
	if t == nil {
		return nil, gateProblem(gate.ErrNotFound)
	}
	return showGateToken(t), nil
}

func (a *API) createGateToken(c *call, in *gateTokenBody) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	for _, name := range in.Proxies {
		if cfg.Proxies[name] == nil {
			return nil, refuse(operator.CodeInvalid, "/proxies", "there is no proxy "+clean(name), "\"headgate status\" lists the proxies")
		}
	}
	t, text, err := a.Control.Gate().CreateToken(gate.NewToken{
		Name: in.Name, Description: in.Description, Person: in.Person, Proxies: in.Proxies, Paths: in.Paths, Expires: in.Expires, By: c.who.Name,
	}, c.dryRun)
	if err != nil {
		return nil, gateProblem(err)
	}
	b := showGateToken(t)
	b.Token = text
	if !c.dryRun {
		c.note("gate.token.create", "token "+t.Name, "")
		c.w.Header().Set("Location", Prefix+"/gate/tokens/"+t.Name)
	}
	return b, nil
}

func (a *API) revokeGateToken(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	if err := engine.RevokeToken(c.name(), c.who.Name, c.dryRun); err != nil {
		return nil, gateProblem(err)
	}
	if !c.dryRun {
		c.note("gate.token.revoke", "token "+c.name(), "")
	}
	return nil, nil
}
