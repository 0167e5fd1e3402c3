package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"headgate/internal/operator"
	"headgate/internal/query"
	"headgate/internal/store"
)

// trafficKept is how long the traffic of the machines is cached: requests within this time share
// one query.
const trafficKept = 5 * time.Second

// trafficPeriod is the period of the rates.
const trafficPeriod = "1m"

// trafficRows are the rows of the traffic of all machines.
func (a *API) trafficRows() []row {
	return []row{
		{method: http.MethodGet, path: "/traffic", access: viewer, area: areaStatus, out: of[nodeTraffic](), list: true, query: paging("node"), handle: a.traffic,
			about: "Lists the nodes with their HTTP traffic in the last minute. If a node does not respond within 3 s, `problem` is the reason."},
	}
}

// nodeTraffic is the HTTP traffic of a machine.
type nodeTraffic struct {
	// Node is the name of the machine.
	Node string `json:"node" required:"true"`
	// Requests is the number of requests per second.
	Requests float64 `json:"requests_per_second"`
	// ClientErrors is the number of responses per second with a status 4xx.
	ClientErrors float64 `json:"errors_4xx_per_second"`
	// ServerErrors is the number of responses per second with a status 5xx.
	ServerErrors float64 `json:"errors_5xx_per_second"`
	// P99 is the highest 99th percentile of the duration of requests in any 10 seconds, in
	// milliseconds. It is absent without requests.
	P99 *float64 `json:"p99_ms,omitempty"`
	// Problem is why the traffic of the machine is unknown.
	Problem string `json:"problem,omitempty"`
}

// trafficCache is the result of the last query for the traffic of all machines.
type trafficCache struct {
	mu   sync.Mutex
	at   time.Time
	last []nodeTraffic
}

// traffic returns the traffic of all machines. It is the same for all operators that may use the
// row.
func (a *API) traffic(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	t := &a.trafficNow
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.at) > trafficKept {
		// A client that disconnects does not cancel the query for the others that wait.
		ctx, stop := context.WithTimeout(context.WithoutCancel(c.rq.Context()), nodeTimeout)
		defer stop()
		all, err := a.queryTraffic(ctx, &c.who)
		if err != nil {
			return nil, err
		}
		t.last, t.at = all, time.Now()
	}
	all := make([]listed, len(t.last))
	for i := range t.last {
		all[i] = listed{name: t.last[i].Node, value: t.last[i]}
	}
	return c.list(all)
}

// queryTraffic returns the traffic of all machines, including this one.
func (a *API) queryTraffic(ctx context.Context, who *operator.Identity) ([]nodeTraffic, error) {
	nodes, err := store.Nodes(ctx, a.Control.Store())
	if err != nil {
		return nil, err
	}
	own := a.Control.NodeName()
	if !slices.ContainsFunc(nodes, func(n store.Node) bool { return n.Name == own }) {
		nodes = append(nodes, store.Node{Name: own})
	}
	data, err := json.Marshal(nodeQuestion{Path: "/series", Query: "period=" + trafficPeriod, Who: who.Name, Role: who.Role, Scopes: who.Scopes})
	if err != nil {
		return nil, err
	}
	var others []string
	for _, n := range nodes {
		if n.Name != own && !n.Stopped && len(others) < query.MaxNodes {
			others = append(others, n.Name)
		}
	}
	answers := map[string]query.Answer{}
	if a.Peers != nil && len(others) > 0 {
		answers = a.Peers.QueryNodes(ctx, others, NodeQuestion, data)
	}
	mine, err := a.AnswerNode(ctx, own, data)
	answers[own] = query.Answer{Data: mine, Err: err}
	all := make([]nodeTraffic, len(nodes))
	for i := range nodes {
		answer, ok := answers[nodes[i].Name]
		if !ok {
			answer.Err = query.ErrNoAnswer
		}
		all[i] = a.trafficOf(&nodes[i], answer)
	}
	return all, nil
}

// trafficOf reads the charts in the response of a machine.
func (a *API) trafficOf(n *store.Node, answer query.Answer) nodeTraffic {
	t := nodeTraffic{Node: n.Name}
	if n.Stopped {
		t.Problem = nodeStopped(n).Error()
		return t
	}
	reply, err := a.replyOf(n, answer)
	if err == nil {
		err = t.read(reply.body)
	}
	if err != nil {
		t.Problem = err.Error()
	}
	return t
}

// read adds up the points of a seriesBody.
func (t *nodeTraffic) read(body []byte) error {
	var b seriesBody
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	seconds := float64(max(b.Step*len(b.Points), 1))
	for _, p := range b.Points {
		t.Requests += float64(p.Requests) / seconds
		t.ClientErrors += float64(p.ClientErrors) / seconds
		t.ServerErrors += float64(p.ServerErrors) / seconds
		if p.P99 != nil && (t.P99 == nil || *p.P99 > *t.P99) {
			t.P99 = p.P99
		}
	}
	return nil
}
