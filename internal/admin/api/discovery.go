package api

import (
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// discoveryBody is the state of discovery.
type discoveryBody struct {
	// Providers are the configured providers, by name.
	Providers []providerBody `json:"providers"`
}

// providerBody is the state of a provider of discovered objects.
type providerBody struct {
	// Name is the name of the provider's entry in discovery.
	Name string `json:"name"`
	// Type is docker, http or agent.
	Type string `json:"type"`
	// Endpoint is the address of its API, the URL of its document, or the
	// address of its machine.
	Endpoint string `json:"endpoint"`
	// State is connecting until the first response, then running or error; stale while an
	// agent does not report and its objects are still active.
	State string `json:"state"`
	// Since is when the state changed last.
	Since time.Time `json:"since,omitzero"`
	// Reason is why it is in error. The objects that it found before remain active.
	Reason string `json:"reason,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
	// Objects is the number of active objects that it found.
	Objects int `json:"objects"`
	// Issues are what it found and headgate cannot use.
	Issues []issueBody `json:"issues"`
}

// issueBody is something in what a provider found that cannot be used.
type issueBody struct {
	// Container is whose it is; absent for the provider itself and for documents.
	Container string `json:"container,omitempty"`
	// Label is the label that is meant, if it is one; or the field of an object in a
	// document.
	Label string `json:"label,omitempty"`
	// Kind is the kind of the affected object, such as proxies.
	Kind string `json:"kind,omitempty"`
	// Name is the object's name. An object with the container's own name is not active.
	Name string `json:"name,omitempty"`
	// Owner is the object of the configuration files that already has what this one
	// requires, if that is the issue.
	Owner *discovery.Reference `json:"owner,omitempty"`
	// Code is a keyword for the kind of issue.
	Code string `json:"code"`
	// Message describes the issue.
	Message string `json:"message"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
	// Since is when it was seen first.
	Since time.Time `json:"since,omitzero"`
}

// discovery serves the state of the providers.
func (a *API) discovery(*call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	out := discoveryBody{Providers: []providerBody{}}
	for _, p := range a.Control.Discovery() {
		b := providerBody{
			Name: p.Name, Type: p.Type, Endpoint: p.Endpoint, State: string(p.State), Since: p.Since, Reason: p.Reason, Hint: p.Hint,
			Objects: p.Objects, Issues: make([]issueBody, len(p.Issues)),
		}
		for i, s := range p.Issues {
			b.Issues[i] = issueBody{s.Container, s.Label, s.Kind, s.Name, nil, string(s.Code), s.Message, s.Hint, s.Since}
			if s.Owner != (discovery.Reference{}) {
				b.Issues[i].Owner = &s.Owner
			}
		}
		out.Providers = append(out.Providers, b)
	}
	return out, nil
}

// discovered rejects changes of an object that was discovered.
func (e *edit) discovered() error {
	if e.kind == nil || e.name == "" {
		return nil
	}
	cfg, err := e.call.api.running()
	if err != nil || cfg.Found(e.kind.Name, e.name) == nil {
		return nil
	}
	origin, _ := cfg.Origin(e.kind.Name, e.name)
	hint := "change the labels there, or make one of the same name here, which wins"
	if origin.Via == config.ViaHTTP {
		hint = "change the document there, or make one of the same name here, which wins"
	}
	p := refuse("read_only", "", fromElsewhere(e.kind, origin), hint)
	p.Current = jsonOf(struct {
		Origin config.Origin `json:"origin"`
	}{origin})
	return p
}
