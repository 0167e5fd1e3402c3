package plan

import (
	"slices"
	"strings"

	"headgate/internal/exchange"
)

// Decision is what a plan makes of a request, as far as it is known without asking a
// server.
type Decision struct {
	// Proxy is the name of the proxy that takes the request, "" if none does.
	Proxy string `json:"proxy,omitempty"`
	// Route is the path of the route that takes it.
	Route string `json:"route,omitempty"`
	// Servers are the addresses of the servers that may get it, in order. There are none
	// when it is answered without one.
	Servers []string `json:"servers,omitempty"`
	// By is the filter or source that responds without a server, "" if a server is used.
	By string `json:"by,omitempty"`
	// Status is the status of this response.
	Status int `json:"status,omitempty"`
	// Reason is the word for why it is answered.
	Reason string `json:"reason,omitempty"`
	// Location is where a redirect leads to.
	Location string `json:"location,omitempty"`
}

// Equal reports whether two decisions are the same.
func (d *Decision) Equal(e *Decision) bool {
	return d.Proxy == e.Proxy && d.Route == e.Route && slices.Equal(d.Servers, e.Servers) && d.SameAnswer(e)
}

// SameAnswer reports whether two decisions give the same answer without a server, or
// both ask one.
func (d *Decision) SameAnswer(e *Decision) bool {
	return d.By == e.By && d.Status == e.Status && d.Reason == e.Reason && d.Location == e.Location
}

// Decide returns a summary of how a request to a port would be handled; Explain has the
// details. The port number of the question is ignored. It sends nothing.
func (p *Port) Decide(q Question) Decision {
	var d Decision
	ex, answer := p.read(q)
	if answer != nil {
		d.answered("http", answer)
		return d
	}
	r, answer := p.selectRoute(ex)
	if r != nil {
		d.Proxy, d.Route = r.proxy.Name, r.path()
	}
	if answer != nil {
		d.answered("match", answer)
		return d
	}
	if answer, by := r.pipeline.Rehearse(ex); answer != nil {
		d.answered(by, answer)
		return d
	}
	if r.servers == nil {
		if answer := r.source.Respond(ex); answer != nil {
			d.answered(r.source.Describe(), answer)
			return d
		}
		d.made(r, ex)
		return d
	}
	if r.scripts != nil {
		if scripted, answer := r.scripts.Find(ex); answer != nil {
			d.answered(r.source.Describe(), answer)
			return d
		} else if !scripted {
			d.made(r, ex)
			return d
		}
	}
	list := r.servers.List()
	if r.split != nil {
		list = r.split.List()
	}
	d.Servers = make([]string, len(list))
	for i, s := range list {
		d.Servers[i] = s.URL
	}
	return d
}

// made notes the response that the source of a route has made.
func (d *Decision) made(r *Route, ex *exchange.Exchange) {
	d.By, d.Status = r.source.Describe(), ex.Response.Status
	if body := ex.Response.Body; body != nil {
		body.Close()
	}
}

// answered notes an answer that is made without a server.
func (d *Decision) answered(by string, answer *exchange.Answer) {
	d.By, d.Status, d.Reason = by, answer.Status, answer.Reason.String()
	if d.Status == 0 {
		d.Status = answer.Reason.Status()
	}
	d.Location = strings.Clone(locationOf(answer))
}
