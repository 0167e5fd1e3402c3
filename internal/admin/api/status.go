package api

import (
	"time"

	"headgate/internal/control"
	"headgate/internal/operator"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/upgrade"
)

// statusBody is the state of headgate: the fields of control.Status, and of certificates by
// ACME what the API shows of orders.
type statusBody struct {
	// State is starting before the first configuration was applied; serving; degraded
	// when an older revision is served because the documents are refused; or stopping.
	State string `json:"state" required:"true"`
	// Since is when the active configuration was applied.
	Since time.Time `json:"since,omitzero" required:"true"`
	// Revision is its name in the state directory.
	Revision string `json:"revision" required:"true"`
	// ETag is that of the configuration, for If-Match.
	ETag string `json:"etag,omitempty"`
	// Process is the process that answers: its version, its generation, whether it is being
	// upgraded, and the process that it replaced while that has connections.
	Process upgrade.State `json:"process" required:"true"`
	// Refused is why the documents are refused; absent if they are active.
	Refused *control.RefusedState `json:"refused,omitempty"`
	// Pending is the change that waits to be confirmed; absent if there is none.
	Pending *control.PendingState `json:"pending,omitempty"`
	// Admin is how to reach the admin listener; absent if it is disabled.
	Admin *control.AdminListener `json:"admin,omitempty"`
	// Ports are the ports, sorted by name.
	Ports []ports.State `json:"ports" required:"true"`
	// TCPProxies are the active TCP proxies, sorted by name.
	TCPProxies []control.StreamState `json:"tcp_proxies,omitempty"`
	// UDPProxies are the active UDP proxies, sorted by name.
	UDPProxies []control.StreamState `json:"udp_proxies,omitempty"`
	// Proxies are the proxies with their servers, sorted by name.
	Proxies []plan.ProxyState `json:"proxies" required:"true"`
	// Sources are where objects come from, with what is wrong there.
	Sources []control.SourceState `json:"sources" required:"true"`
	// Certificates are the configured certificates, then those by ACME.
	Certificates []certificateBody `json:"certificates,omitempty"`
	// ACME are the orders of the certificates by ACME, without their timelines.
	ACME []orderBody `json:"acme,omitempty"`
	// Held are the servers that operators drain or have disabled.
	Held []heldBody `json:"held_servers,omitempty"`
	// Splits are the routes with a split.
	Splits []control.SplitState `json:"splits,omitempty"`
	// ECH are the ports with Encrypted Client Hello, without their records.
	ECH []control.ECHState `json:"ech,omitempty"`
	// Unverified are the https servers whose certificates are not verified
	// (insecure_skip_verify).
	Unverified []plan.Unverified `json:"unverified_servers,omitempty"`
}

// status returns the state of headgate.
func (a *API) status(c *call) (any, error) {
	if a.Control == nil {
		return nil, refuse("unavailable", "", "nothing is served yet", "")
	}
	proxy := c.text("proxy")
	if proxy == "" && c.text("proxies") == "false" {
		proxy = control.NoProxy
	}
	s := a.Control.StatusOf(proxy)
	if proxy != "" && proxy != control.NoProxy && len(s.Proxies)+len(s.TCPProxies)+len(s.UDPProxies) == 0 {
		return nil, refuseParameter(operator.CodeNotFound, "proxy", "there is no such proxy", "")
	}
	out := &statusBody{
		State: s.State, Since: s.Since, Revision: s.Revision, ETag: a.Control.ETag(), Process: s.Process, Refused: s.Refused, Pending: s.Pending,
		Ports: s.Ports, TCPProxies: s.TCPProxies, UDPProxies: s.UDPProxies, Proxies: s.Proxies, Sources: s.Sources,
		Certificates: s.Certificates, Unverified: s.Unverified, Splits: s.Splits, ECH: s.ECH, Admin: s.Admin,
	}
	for _, r := range s.ACME {
		out.ACME = append(out.ACME, showOrder(r))
	}
	for _, h := range s.Held {
		out.Held = append(out.Held, heldBody(h))
	}
	return out, nil
}
