package api

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/agent"
	"headgate/internal/operator"
)

// agentRows are the rows of agents that report the containers of other machines.
func (a *API) agentRows() []row {
	return []row{
		{method: http.MethodPut, path: "/discovery/agents/{name}", may: []int{403, 404, 429}, access: editor, area: areaAgents, in: of[agentReport](), handle: withBody(a.reportAgent),
			maxBody: agent.MaxReport, noDry: "a report is the state of another machine, and changes no configuration file",
			about: "Replaces the report of the containers of another machine, for the entry of discovery.agent with this name. Only a token of the same name with the scope agents may send it; `headgate agent` does so every 10 seconds."},
	}
}

// agentReport is what an agent sees of its machine.
type agentReport struct {
	// Objects are the proxies that labels of containers define.
	Objects []agentObject `json:"objects,omitempty" max:"2000"`
	// Issues are what of the labels cannot be used.
	Issues []agentIssue `json:"issues,omitempty" max:"1000"`
	// Failure is why the containers are not known now. The objects are the last known ones.
	Failure string `json:"failure,omitempty" max:"2048"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty" max:"2048"`
}

// agentObject is a proxy, TCP proxy or UDP proxy that labels define.
type agentObject struct {
	// Kind is proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind" required:"true" max:"40"`
	// Name is the name of the object.
	Name string `json:"name" required:"true" max:"256"`
	// Container is the name of the container.
	Container string `json:"container,omitempty" max:"256"`
	// Label is the label that made it an object, if one did.
	Label string `json:"label,omitempty" max:"16384"`
	// Created is when the container was created.
	Created time.Time `json:"created,omitzero"`
	// Labels are the fields that labels set.
	Labels []agentLabel `json:"labels,omitempty" max:"2000"`
	// Servers are the published ports of the containers.
	Servers []agentServer `json:"servers,omitempty" max:"256"`
}

// agentLabel is a field that a label sets.
type agentLabel struct {
	// Path is the field, such as routes.0.path.
	Path string `json:"path" max:"16384"`
	// Value is its value.
	Value string `json:"value" max:"16384"`
	// Container is the container that has the label.
	Container string `json:"container,omitempty" max:"256"`
	// Name is the name of the label.
	Name string `json:"name,omitempty" max:"16384"`
}

// agentServer is a published port.
type agentServer struct {
	// Address is a URL, or a host and a port. Its host is replaced by the address of the
	// machine.
	Address string `json:"address" required:"true" max:"2048"`
	// Container is whose it is.
	Container string `json:"container,omitempty" max:"256"`
	// Labels are the fields of the server that labels set.
	Labels []agentLabel `json:"labels,omitempty" max:"100"`
}

// agentIssue is something in the labels of containers that cannot be used.
type agentIssue struct {
	// Container is whose it is.
	Container string `json:"container,omitempty" max:"256"`
	// Label is the label that is meant, if it is one.
	Label string `json:"label,omitempty" max:"16384"`
	// Kind is the kind of the affected object, such as proxies.
	Kind string `json:"kind,omitempty" max:"40"`
	// Name is the object's name.
	Name string `json:"name,omitempty" max:"256"`
	// Code is a keyword for the kind of issue.
	Code string `json:"code" max:"40"`
	// Message describes the issue.
	Message string `json:"message" max:"32768"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty" max:"32768"`
}

// receiver is a source that is given reports.
type receiver interface {
	Receive(from netip.Addr, r *agent.Report) (again bool, err error)
}

// reportAgent gives a report to its source.
func (a *API) reportAgent(c *call, in *agentReport) (any, error) {
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
	again, err := source.Receive(c.who.Address, in.report())
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

// report returns the report in the form of the source.
func (in *agentReport) report() *agent.Report {
	r := &agent.Report{Failure: in.Failure, Hint: in.Hint}
	for _, o := range in.Objects {
		object := agent.Object{Kind: o.Kind, Name: o.Name, Container: o.Container, Label: o.Label, Created: o.Created, Labels: labelsOf(o.Labels)}
		for _, s := range o.Servers {
			object.Servers = append(object.Servers, agent.Server{Address: s.Address, Container: s.Container, Labels: labelsOf(s.Labels)})
		}
		r.Objects = append(r.Objects, object)
	}
	for _, i := range in.Issues {
		r.Issues = append(r.Issues, discovery.Issue{Container: i.Container, Label: i.Label, Kind: i.Kind, Name: i.Name, Code: discovery.Code(i.Code), Message: i.Message, Hint: i.Hint})
	}
	return r
}

func labelsOf(in []agentLabel) []config.Label {
	out := make([]config.Label, len(in))
	for i, l := range in {
		out[i] = config.Label(l)
	}
	return out
}
