package api

import (
	"cmp"
	"maps"
	"slices"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/plan"
)

// maxAttention is how many proxies a summary names.
const maxAttention = 20

// attentive are the states of proxies that need attention, the worst first.
var attentive = []string{plan.ProxyDown, plan.RouteFailingOpen, plan.ProxyDegraded}

// summaryBody is what an overview shows of all proxies, of which there may be very many:
// of HTTP, TCP and UDP.
type summaryBody struct {
	// Proxies counts the proxies by their state.
	Proxies []stateCount `json:"proxies" required:"true"`
	// Total is how many proxies there are.
	Total int `json:"total" required:"true"`
	// Servers counts the servers of all of them; one of two routes counts twice.
	Servers serverCount `json:"servers" required:"true"`
	// AttentionTotal is how many proxies are degraded, failing open or down, or have
	// issues of discovery.
	AttentionTotal int `json:"attention_total" required:"true"`
	// Attention are the first 20 of these, those that are down first.
	Attention []attentionBody `json:"attention" required:"true"`
	// Certificates counts the certificates by their state, configured or by ACME.
	Certificates []stateCount `json:"certificates" required:"true"`
	// CertificatesTotal is how many certificates there are.
	CertificatesTotal int `json:"certificates_total" required:"true"`
	// CertificatesAttentionTotal is how many of them are expired, missing, failed, blocked
	// or expiring.
	CertificatesAttentionTotal int `json:"certificates_attention_total" required:"true"`
	// CertificatesAttention are the first 20 of these, the most urgent first.
	CertificatesAttention []certificateBody `json:"certificates_attention" required:"true"`
}

// certificateBody is the state of a certificate, whether the configuration names it or
// ACME issues it.
type certificateBody = control.CertificateState

// stateCount is how many proxies are in a state.
type stateCount struct {
	// State is the state, as in a list of proxies.
	State string `json:"state" required:"true"`
	// Count is how many are in it.
	Count int `json:"count" required:"true"`
}

// attentionBody is a proxy that needs attention.
type attentionBody struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind" required:"true"`
	// Name is the name of the proxy.
	Name string `json:"name" required:"true"`
	// State is its state.
	State string `json:"state" required:"true"`
	// Issues are what is wrong with it.
	Issues []string `json:"issues" required:"true"`
}

// summary counts the proxies of all kinds and names those that need attention.
func (a *API) summary(*call) (any, error) {
	out := &summaryBody{Attention: []attentionBody{}}
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	states := map[string]int{}
	a.summarize(out, states)
	a.summarizeStreams(out, states, "tcp_proxies", slices.Sorted(maps.Keys(cfg.TCPProxies)), func(name string) string {
		return streamWord(cfg.TCPProxies[name].Active, cfg.Here(cfg.TCPProxies[name].Nodes))
	})
	a.summarizeStreams(out, states, "udp_proxies", slices.Sorted(maps.Keys(cfg.UDPProxies)), func(name string) string {
		return streamWord(cfg.UDPProxies[name].Active, cfg.Here(cfg.UDPProxies[name].Nodes))
	})
	out.Proxies = countsOf(states)
	out.addCertificates(a.Control.CertificateStates())
	order := func(state string) int {
		if i := slices.Index(attentive, state); i >= 0 {
			return i
		}
		return len(attentive)
	}
	slices.SortStableFunc(out.Attention, func(a, b attentionBody) int { return cmp.Compare(order(a.State), order(b.State)) })
	out.Attention = out.Attention[:min(len(out.Attention), maxAttention)]
	return out, nil
}

// countsOf lists counts by state, sorted by its name.
func countsOf(states map[string]int) []stateCount {
	out := make([]stateCount, 0, len(states))
	for _, state := range slices.Sorted(maps.Keys(states)) {
		out = append(out, stateCount{state, states[state]})
	}
	return out
}

// addCertificates counts the certificates and names those that need attention.
func (b *summaryBody) addCertificates(all []control.CertificateState) {
	states := map[string]int{}
	for i := range all {
		states[string(all[i].State)]++
	}
	urgent := control.CertificatesByUrgency(all)
	b.Certificates, b.CertificatesTotal, b.CertificatesAttentionTotal = countsOf(states), len(all), len(urgent)
	b.CertificatesAttention = append([]certificateBody{}, urgent[:min(len(urgent), maxAttention)]...)
}

// summarize adds the HTTP proxies to a summary.
func (a *API) summarize(out *summaryBody, states map[string]int) {
	issues := a.Control.Issues("proxies")
	for _, p := range a.Control.Plan().Proxies("") {
		states[p.State]++
		wrong := issues[p.Name]
		if p.Reason != "" && slices.Contains(attentive, p.State) {
			wrong = append([]string{p.Reason}, wrong...)
		}
		out.add(serverCount{p.Healthy, p.Unknown, p.Total}, attentionBody{"proxies", p.Name, p.State, wrong})
	}
}

// summarizeStreams adds the TCP or UDP proxies to a summary.
func (a *API) summarizeStreams(out *summaryBody, states map[string]int, kind string, names []string, word func(name string) string) {
	now := a.statesOf(config.KindOf(kind), names)
	for _, name := range names {
		state := cmp.Or(now.words[kind+" "+name], plan.ProxyActive)
		if now := word(name); now != plan.ProxyActive {
			state = now
		}
		states[state]++
		var servers serverCount
		if at := now.streams[name]; at.Health != nil {
			servers = *at.Health
		}
		out.add(servers, attentionBody{kind, name, state, now.streams[name].Issues})
	}
}

// add adds a proxy, and names it if it needs attention.
func (b *summaryBody) add(servers serverCount, p attentionBody) {
	b.Total++
	b.Servers.Healthy += servers.Healthy
	b.Servers.Unknown += servers.Unknown
	b.Servers.Total += servers.Total
	if !slices.Contains(attentive, p.State) && len(p.Issues) == 0 {
		return
	}
	if p.Issues == nil {
		p.Issues = []string{}
	}
	b.AttentionTotal++
	b.Attention = append(b.Attention, p)
}
