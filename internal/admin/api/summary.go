package api

import (
	"cmp"
	"maps"
	"slices"

	"headgate/internal/config"
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
	Proxies []stateCount `json:"proxies"`
	// Total is how many proxies there are.
	Total int `json:"total"`
	// Servers counts the servers of all of them; one of two routes counts twice.
	Servers serverCount `json:"servers"`
	// AttentionTotal is how many proxies are degraded, failing open or down, or have
	// issues of discovery.
	AttentionTotal int `json:"attention_total"`
	// Attention are the first 20 of these, those that are down first.
	Attention []attentionBody `json:"attention"`
}

// stateCount is how many proxies are in a state.
type stateCount struct {
	// State is the state, as in a list of proxies.
	State string `json:"state"`
	// Count is how many are in it.
	Count int `json:"count"`
}

// attentionBody is a proxy that somebody should look at.
type attentionBody struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Name is the name of the proxy.
	Name string `json:"name"`
	// State is its state.
	State string `json:"state"`
	// Issues are what is wrong with it.
	Issues []string `json:"issues"`
}

// summary counts the proxies of all kinds and names those that need attention.
func (a *API) summary(*call) (any, error) {
	out := &summaryBody{Proxies: []stateCount{}, Attention: []attentionBody{}}
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	states := map[string]int{}
	a.summarize(out, states)
	a.summarizeStreams(out, states, "tcp_proxies", slices.Sorted(maps.Keys(cfg.TCPProxies)), func(name string) bool { return cfg.TCPProxies[name].Active })
	a.summarizeStreams(out, states, "udp_proxies", slices.Sorted(maps.Keys(cfg.UDPProxies)), func(name string) bool { return cfg.UDPProxies[name].Active })
	for state, n := range states {
		out.Proxies = append(out.Proxies, stateCount{state, n})
	}
	slices.SortFunc(out.Proxies, func(a, b stateCount) int { return cmp.Compare(a.State, b.State) })
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

// summarize adds the HTTP proxies to a summary.
func (a *API) summarize(out *summaryBody, states map[string]int) {
	issues := a.issuesOf("proxies")
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
func (a *API) summarizeStreams(out *summaryBody, states map[string]int, kind string, names []string, active func(name string) bool) {
	now := a.statesOf(config.KindOf(kind), names)
	for _, name := range names {
		state := cmp.Or(now.words[kind+" "+name], plan.ProxyActive)
		if !active(name) {
			state = plan.ProxyInactive
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
