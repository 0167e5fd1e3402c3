package api

import (
	"cmp"
	"slices"

	"headgate/internal/plan"
)

// maxAttention is how many proxies a summary names.
const maxAttention = 20

// summaryBody is what an overview shows of all proxies, of which there may be very many.
type summaryBody struct {
	// Proxies counts the proxies by their state.
	Proxies []stateCount `json:"proxies"`
	// Total is how many proxies there are.
	Total int `json:"total"`
	// Servers counts the servers of all of them; one of two routes counts twice.
	Servers serverCount `json:"servers"`
	// AttentionTotal is how many proxies are degraded or down, or have issues of
	// discovery.
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
	// Name is the name of the proxy.
	Name string `json:"name"`
	// State is its state.
	State string `json:"state"`
	// Issues are what is wrong with it.
	Issues []string `json:"issues"`
}

// summary counts the proxies and names those that need attention.
func (a *API) summary(*call) (any, error) {
	out := summaryBody{Proxies: []stateCount{}, Attention: []attentionBody{}}
	if _, err := a.running(); err != nil {
		return nil, err
	}
	issues, states := a.issuesOf("proxies"), map[string]int{}
	for _, p := range a.Control.Plan().Proxies("") {
		states[p.State]++
		out.Total++
		out.Servers.Healthy += p.Healthy
		out.Servers.Unknown += p.Unknown
		out.Servers.Total += p.Total
		wrong := issues[p.Name]
		if bad := p.State == plan.ProxyDegraded || p.State == plan.ProxyDown; bad && p.Reason != "" {
			wrong = append([]string{p.Reason}, wrong...)
		} else if !bad && len(wrong) == 0 {
			continue
		}
		out.AttentionTotal++
		out.Attention = append(out.Attention, attentionBody{p.Name, p.State, wrong})
	}
	for state, n := range states {
		out.Proxies = append(out.Proxies, stateCount{state, n})
	}
	slices.SortFunc(out.Proxies, func(a, b stateCount) int { return cmp.Compare(a.State, b.State) })
	rank := []string{plan.ProxyDown, plan.ProxyDegraded}
	order := func(state string) int {
		if i := slices.Index(rank, state); i >= 0 {
			return i
		}
		return len(rank)
	}
	slices.SortStableFunc(out.Attention, func(a, b attentionBody) int { return cmp.Compare(order(a.State), order(b.State)) })
	out.Attention = out.Attention[:min(len(out.Attention), maxAttention)]
	return out, nil
}
