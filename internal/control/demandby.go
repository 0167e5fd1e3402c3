package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/certs/acme"
	"headgate/internal/pair"
	"headgate/internal/store"
)

// demandQuestion is the name of the query that makes another machine order a certificate on demand. The
// follower of a pair sends it to its leader, and a machine without a port for challenges to one that has it.
const demandQuestion = "certificate-on-demand"

// The limits of these queries: the time for one host, and the number of pending queries.
const (
	demandTime = 5 * time.Second
	maxDemands = 4 // as many as a machine handles at the same time
)

// demanded is a host that has no certificate yet, and was allowed.
type demanded struct {
	Host string `json:"host"`
}

// demandAnswer is the result: the order was placed if no field is set.
type demandAnswer struct {
	// Limited is the limit of the rule that was reached.
	Limited *acme.Limited `json:"limited,omitempty"`
	// Refused is why the machine orders no certificate for the host.
	Refused string `json:"refused,omitempty"`
}

// demandIssuer orders certificates on demand, with the manager of this machine or through another
// machine, which counts the orders of all.
type demandIssuer struct {
	*acme.Manager
	c    *Control
	open chan struct{} // holds one value for each pending query
}

// newDemandIssuer sets the issuer of this machine, and the handler for the queries of other machines.
func (c *Control) newDemandIssuer() {
	i := &demandIssuer{c.issuer.manager, c, make(chan struct{}, maxDemands)}
	c.issuer.gate.Use(i)
	if c.peers != nil {
		c.peers.Handle(demandQuestion, i.answerDemand)
	}
}

// OrderOnDemand orders a certificate: see acme.Manager.OrderOnDemand. The error wraps
// store.ErrUnavailable if the leader does not respond, and acme.ErrNotAllowed if it refuses the host.
func (i *demandIssuer) OrderOnDemand(ctx context.Context, host string, d *acme.Demand) error {
	p, ok := i.c.state.(paired)
	if !ok {
		if i.c.peers != nil && !i.CanOrderOnDemand(host, d) && i.orderByOther(ctx, host) {
			return nil
		}
		return i.Manager.OrderOnDemand(ctx, host, d)
	}
	st := p.State()
	if st.Role == pair.Leader {
		return i.Manager.OrderOnDemand(ctx, host, d)
	}
	if st.Role != pair.Follower || !st.Connected || i.c.peers == nil {
		return fmt.Errorf("%w: the leader, which orders certificates, is not connected", store.ErrUnavailable)
	}
	end := i.ExpectOnDemand(host)
	err := i.orderBy(ctx, st.Leader, host)
	if err != nil {
		end()
	}
	return err
}

// maxOthers limits the machines that are queried, one after the other, for one host.
const maxOthers = 3

// orderByOther makes another machine with the same database order a certificate, because this machine has
// no port for the challenge. It reports whether a machine ordered it.
func (i *demandIssuer) orderByOther(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, demandTime)
	defer cancel()
	nodes, err := i.c.runningOthers(ctx)
	if err != nil {
		return false
	}
	end := i.ExpectOnDemand(host)
	for n := range nodes[:min(len(nodes), maxOthers)] {
		one, stop := context.WithTimeout(ctx, demandTime/maxOthers)
		err := i.orderBy(one, nodes[n].Name, host)
		stop()
		if err == nil {
			return true
		}
	}
	end()
	return false
}

// orderBy makes another machine order a certificate, and returns when that machine has counted the order.
func (i *demandIssuer) orderBy(ctx context.Context, node, host string) error {
	ctx, cancel := context.WithTimeout(ctx, demandTime)
	defer cancel()
	select {
	case i.open <- struct{}{}:
		defer func() { <-i.open }()
	case <-ctx.Done():
		return fmt.Errorf("%w: earlier queries are still pending", store.ErrUnavailable)
	}
	data, err := json.Marshal(demanded{host})
	if err != nil {
		return err
	}
	answer := i.c.peers.QueryNodes(ctx, []string{node}, demandQuestion, data)[node]
	if answer.Err != nil {
		return fmt.Errorf("%w: machine %s, which orders certificates: %w", store.ErrUnavailable, node, answer.Err)
	}
	var out demandAnswer
	if err := json.Unmarshal(answer.Data, &out); err != nil {
		return fmt.Errorf("read the response from machine %s: %w", node, err)
	}
	switch {
	case out.Limited != nil:
		return out.Limited
	case out.Refused != "":
		return fmt.Errorf("%w by machine %s: %s", acme.ErrNotAllowed, node, out.Refused)
	}
	return nil
}

// answerDemand orders a certificate for another machine, which has requested the permission (ask). The
// rule and the limits of this machine apply.
func (i *demandIssuer) answerDemand(ctx context.Context, from string, data []byte) ([]byte, error) {
	var q demanded
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	p, pairs := i.c.state.(paired)
	if pairs && p.State().Role != pair.Leader {
		return nil, errors.New("this machine is not the leader")
	}
	var out demandAnswer
	err := i.orderFor(ctx, q.Host, !pairs)
	switch {
	case errors.As(err, &out.Limited):
		i.c.log.Info("no certificate on demand for another machine: a limit is reached", "host", q.Host, "node", from, "error", err)
	case errors.Is(err, acme.ErrNotAllowed):
		out.Refused = err.Error()
	case err != nil:
		return nil, err
	}
	return json.Marshal(out)
}

// orderFor orders a certificate for a host, unless there is one or an order for it. If others is set and
// this machine has no port for the challenge, it refuses, so that the next machine is queried.
func (i *demandIssuer) orderFor(ctx context.Context, host string, others bool) error {
	if what, _ := acme.CheckName(host); what != "" {
		return fmt.Errorf("%w: %s", acme.ErrNotAllowed, what)
	}
	plan := i.c.Plan()
	if plan == nil {
		return errors.New("it has no configuration yet")
	}
	d := plan.OnDemand("", host)
	if d == nil {
		return fmt.Errorf("%w: it has no proxy with on_demand for the host", acme.ErrNotAllowed)
	}
	if others && !i.CanOrderOnDemand(host, d) {
		return fmt.Errorf("%w: it has no open port for the challenge", acme.ErrNotAllowed)
	}
	switch p := i.Progress(host); {
	case p.Valid, p.Ordering:
		return nil
	case time.Now().Before(p.NotBefore):
		return fmt.Errorf("%w before %s: the last order failed", acme.ErrNotAllowed, p.NotBefore.UTC().Format(time.RFC3339))
	}
	return i.Manager.OrderOnDemand(ctx, host, d)
}
