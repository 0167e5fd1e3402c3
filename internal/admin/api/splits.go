package api

import (
	"errors"
	"net/http"

	"headgate/internal/control"
	"headgate/internal/operator"
	"headgate/internal/server/split"
)

// splitRows are the rows of the splits of routes.
func (a *API) splitRows() []row {
	decide := func(do control.SplitVerb, about string, may ...int) row {
		return row{method: http.MethodPost, path: "/splits/" + string(do), access: editor, area: areaServers, in: of[splitInput](), out: of[control.SplitState](), may: may, dry: true,
			about: about, handle: withBody(func(c *call, in *splitInput) (any, error) { return a.decideSplit(c, in, do) })}
	}
	return []row{
		{method: http.MethodGet, path: "/splits", access: viewer, area: areaServers, out: of[control.SplitState](), list: true, query: paging("name"), handle: a.listSplits,
			about: "Lists the routes with a split: the share of the candidate, and what this machine has counted of both groups."},
		decide(control.SplitPromote, "Gives the candidate its next share, or the share `to`. A candidate that was returned starts again. The configuration does not change.", 404, 409),
		decide(control.SplitHold, "Stops the schedule of a split at the current share. The candidate is still returned if it is worse.", 404, 409),
		decide(control.SplitReturn, "Sends no more requests to the candidate, not even those of its clients, until it is promoted or restarted.", 404, 409),
		decide(control.SplitRestart, "Starts a split again with the first share of its settings.", 404),
	}
}

// splitInput is the split that is meant.
type splitInput struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy" required:"true" max:"128"`
	// Route is the route with its matchers; it is needed only if several routes of the proxy
	// have a split.
	Route string `json:"route,omitempty" max:"4096"`
	// To is the share for promote, in percent; absent is the next step.
	To int `json:"to,omitempty" min:"0" max:"100"`
	// Why is the reason, for the events and the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

// listSplits lists splits.
func (a *API) listSplits(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	var all []listed
	for _, s := range a.Control.Splits() {
		all = append(all, listed{name: s.Proxy + " " + s.Route, text: s.Why, value: s})
	}
	return c.list(all)
}

// decideSplit carries out a command.
func (a *API) decideSplit(c *call, in *splitInput, do control.SplitVerb) (s any, err error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	if in.To != 0 && do != control.SplitPromote {
		return nil, refuse("invalid", "/to", "only promote sets a share", "leave it out")
	}
	cmd := control.SplitCommand{Proxy: in.Proxy, Route: in.Route, Do: do, To: in.To, Who: c.who.Name, Why: in.Why}
	would, err := a.Control.TrySplit(cmd)
	if s = would; err == nil && !c.dryRun {
		cmd.Route = would.Route // the only one, if it was left out
		record := c.who.Audit("split."+string(do), "proxies/"+in.Proxy+" "+cmd.Route, in.Why, nil, jsonOf(in))
		s, err = a.Control.DecideSplit(c.rq.Context(), cmd, record)
	}
	switch {
	case errors.Is(err, control.ErrNoSplit):
		return nil, refuse(operator.CodeNotFound, "/proxy", err.Error(), "\"headgate split list\" lists them")
	case errors.Is(err, control.ErrManySplits):
		return nil, refuse("invalid", "/route", err.Error(), "name the route")
	case errors.Is(err, split.ErrShare):
		return nil, refuse("invalid", "/to", err.Error(), "")
	case errors.Is(err, split.ErrComplete), errors.Is(err, split.ErrReturned), errors.Is(err, split.ErrHeld):
		return nil, refuse("split_state", "/proxy", err.Error(), "")
	case errors.Is(err, control.ErrSplitChanged):
		return nil, refuse(operator.CodeOverloaded, "/proxy", err.Error(), "look at it, and try again")
	}
	return s, err
}
