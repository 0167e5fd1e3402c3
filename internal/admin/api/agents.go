package api

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"headgate/internal/discovery/agent"
	"headgate/internal/operator"
)

// agentRows are the rows of agents that report the containers of other machines.
func (a *API) agentRows() []row {
	return []row{
		{method: http.MethodPut, path: "/discovery/agents/{name}", may: []int{403, 404, 429}, access: editor, area: areaAgents, in: of[agent.Report](), handle: withBody(a.reportAgent),
			maxBody: agent.MaxReport, noDry: "a report is the state of another machine, and changes no configuration file",
			about: "Replaces the report of the containers of another machine, for the entry of discovery.agent with this name. Only a token of the same name with the scope agents may send it; `headgate agent` does so every 10 seconds."},
	}
}

// receiver is a source that is given reports.
type receiver interface {
	Receive(from netip.Addr, r *agent.Report) (again bool, err error)
}

// reportAgent gives a report to its source.
func (a *API) reportAgent(c *call, in *agent.Report) (any, error) {
	name := c.name()
	if c.who.Name != "token:"+name || !slices.Contains(c.who.Scopes, areaAgents) {
		return nil, refuse(operator.CodeForbidden, "", "only a token called "+name+" with the scope agents may report for this entry", "make one with headgate agent invite "+name)
	}
	if _, err := a.running(); err != nil {
		return nil, err
	}
	source, ok := a.Control.Agent(name).(receiver)
	if !ok {
		return nil, refuse(operator.CodeNotFound, "", "there is no entry "+name+" under discovery.agent", "add it to the configuration")
	}
	again, err := source.Receive(c.who.Address, in)
	switch {
	case errors.Is(err, agent.ErrTooSoon):
		return nil, &operator.Error{Code: operator.CodeThrottled, Detail: err.Error(), Remedy: "wait a second", RetryAfter: time.Second}
	case err != nil:
		return nil, refuse(operator.CodeInvalid, "", err.Error(), "")
	case again:
		c.note("agent.connect", "agent "+name, "")
	}
	return nil, nil
}
