package api

import (
	"errors"
	"net/http"
	"time"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/exchange"
	"headgate/internal/operator"
)

// serverRows are the rows of what operators decide about servers at run time.
func (a *API) serverRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	decide := func(path, about string, hold exchange.Hold, may ...int) row {
		return row{method: post, path: "/servers/" + path, access: editor, area: areaServers, in: of[holdInput](), out: of[heldBody](), may: may, dry: true,
			about: about, handle: withBody(func(c *call, in *holdInput) (any, error) { return a.hold(c, in, hold, path) })}
	}
	return []row{
		{method: get, path: "/servers/held", access: viewer, area: areaServers, out: of[heldBody](), list: true, query: paging("name"), handle: a.held,
			about: "Lists the servers that operators drain or have disabled."},
		{method: post, path: "/servers/test", access: editor, area: areaServers, in: of[probeInput](), out: of[probed](), noDry: "a test request that is not sent tests nothing", handle: withBody(a.probe),
			about: "Sends a GET request to a server, which need not be configured yet, and returns the response. Link-local addresses and those of cloud metadata are rejected."},
		decide("drain", "Sends no new clients to a server; clients with a sticky cookie for it stay. The configuration does not change. The state persists across changes and restarts.", exchange.HeldDraining, 404),
		decide("disable", "Sends no requests to a server; active requests finish. The configuration does not change. The state persists across changes and restarts.", exchange.HeldDisabled, 404),
		decide("enable", "Returns a drained or disabled server to service.", exchange.NotHeld, 404, 409),
	}
}

// holdInput is the server to drain or disable, and for how long.
type holdInput struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy" required:"true" max:"128"`
	// Kind is the kind of the proxy; it is needed only if proxies of several kinds have the
	// name.
	Kind string `json:"kind,omitempty" enum:"proxies,tcp_proxies,udp_proxies"`
	// Server is the address of the server as the configuration has it. Its host and port are
	// enough if no other server of the proxy has them. It is meant on all routes.
	Server string `json:"server" required:"true" max:"2048"`
	// For is after how long it ends by itself, such as 10m; without it it does not.
	For string `json:"for,omitempty" max:"32"`
	// Why is the reason, for the events and the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

// heldBody is a server that an operator has drained or disabled.
type heldBody struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Proxy is its name.
	Proxy string `json:"proxy"`
	// Server is the address of the server.
	Server string `json:"server"`
	// Hold is draining, disabled or enabled.
	Hold string `json:"hold"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Until is when it ends by itself; absent is never.
	Until time.Time `json:"until,omitzero"`
	// Who decided it.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// Active is the number of requests, connections or sessions on it now.
	Active int `json:"active"`
}

// held lists held servers.
func (a *API) held(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	var all []listed
	for _, s := range a.Control.HeldServers() {
		all = append(all, listed{name: s.Proxy + " " + s.Kind + " " + s.Server, text: s.Why, value: heldBody(s)})
	}
	return c.list(all)
}

// hold decides about a server.
func (a *API) hold(c *call, in *holdInput, hold exchange.Hold, verb string) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	s := control.HeldServer{Kind: in.Kind, Proxy: in.Proxy, Server: in.Server, Who: c.who.Name, Why: in.Why}
	if s.Kind, err = kindOf(cfg, in); err != nil {
		return nil, err
	}
	if in.For != "" {
		d, err := time.ParseDuration(in.For)
		switch {
		case err != nil || d < time.Second || d > control.MaxHold:
			return nil, refuse("invalid", "/for", "the duration cannot be read, or is not between 1s and 720h", "write it as 10m")
		case hold == exchange.NotHeld:
			return nil, refuse("invalid", "/for", "a server is enabled until something else is decided", "leave it out")
		}
		s.Until = a.Control.Time().Add(d).UTC()
	}
	if c.dryRun {
		s, err = a.Control.TryHold(s, hold)
	} else {
		record := c.who.Audit("server."+verb, s.Kind+"/"+s.Proxy+" "+s.Server, in.Why, nil, jsonOf(in))
		s, err = a.Control.Hold(c.rq.Context(), s, hold, record)
	}
	switch {
	case errors.Is(err, control.ErrNoServer):
		return nil, refuse(operator.CodeNotFound, "/server", "the proxy has no such server, or several that are meant", "\"headgate status "+clean(in.Proxy)+"\" lists them")
	case errors.Is(err, control.ErrNotHeld):
		return nil, refuse("not_held", "/server", err.Error(), "")
	case errors.Is(err, control.ErrHeldMany):
		return nil, refuse(operator.CodeOverloaded, "", err.Error(), "enable some")
	case err != nil:
		return nil, err
	}
	return heldBody(s), nil
}

// kindOf finds the kind of the proxy that is meant.
func kindOf(cfg *config.Config, in *holdInput) (string, error) {
	var found []string
	for _, kind := range []string{"proxies", "tcp_proxies", "udp_proxies"} {
		if (in.Kind == "" || in.Kind == kind) && config.KindOf(kind).Find(cfg, in.Proxy) != nil {
			found = append(found, kind)
		}
	}
	switch len(found) {
	case 0:
		return "", refuse(operator.CodeNotFound, "/proxy", "there is no such proxy", "")
	case 1:
		return found[0], nil
	}
	return "", refuse("invalid", "/kind", "several proxies have this name", "name the kind: proxies, tcp_proxies or udp_proxies")
}
