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

// demandQuestion is the name of the question by which the follower of a pair has its leader order a
// certificate on demand.
const demandQuestion = "certificate-on-demand"

// The bounds of the questions of a follower: the time for one, and how many are open.
const (
	demandTime = 5 * time.Second
	maxDemands = 4 // as many as the leader answers at a time
)

// demanded is a host that has no certificate yet, and was allowed.
type demanded struct {
	Host string `json:"host"`
}

// demandAnswer is what became of the order: it was placed, if nothing is set.
type demandAnswer struct {
	// Limited is the limit of the rule that is reached.
	Limited *acme.Limited `json:"limited,omitempty"`
	// Refused is why the leader orders no certificate for the host.
	Refused string `json:"refused,omitempty"`
}

// demandIssuer orders certificates on demand: with the manager of this machine or, as the follower of a
// pair, by its leader, which counts the orders of both.
type demandIssuer struct {
	*acme.Manager
	c    *Control
	open chan struct{} // holds one for each question
}

// newDemandIssuer sets what orders on demand on this machine, and has questions of a follower answered.
func (c *Control) newDemandIssuer() {
	i := &demandIssuer{c.issuer.manager, c, make(chan struct{}, maxDemands)}
	c.issuer.gate.Use(i)
	if c.peers != nil {
		c.peers.Handle(demandQuestion, i.answerDemand)
	}
}

// OrderOnDemand orders a certificate: see acme.Manager.OrderOnDemand. The error wraps
// store.ErrUnavailable if the leader does not answer, and acme.ErrNotAllowed if it refuses the host.
func (i *demandIssuer) OrderOnDemand(ctx context.Context, host string, d *acme.Demand) error {
	p, ok := i.c.state.(paired)
	if !ok {
		return i.Manager.OrderOnDemand(ctx, host, d)
	}
	st := p.State()
	if st.Role == pair.Leader {
		return i.Manager.OrderOnDemand(ctx, host, d)
	}
	if st.Role != pair.Follower || !st.Connected || i.c.peers == nil {
		return fmt.Errorf("%w: the leader, which orders certificates, is away", store.ErrUnavailable)
	}
	end := i.ExpectOnDemand(host)
	err := i.orderByLeader(ctx, st.Leader, host)
	if err != nil {
		end()
	}
	return err
}

// orderByLeader has the leader order a certificate, and returns when it has counted the order.
func (i *demandIssuer) orderByLeader(ctx context.Context, leader, host string) error {
	ctx, cancel := context.WithTimeout(ctx, demandTime)
	defer cancel()
	select {
	case i.open <- struct{}{}:
		defer func() { <-i.open }()
	case <-ctx.Done():
		return fmt.Errorf("%w: the leader has not answered earlier questions", store.ErrUnavailable)
	}
	data, err := json.Marshal(demanded{host})
	if err != nil {
		return err
	}
	answer := i.c.peers.QueryNodes(ctx, []string{leader}, demandQuestion, data)[leader]
	if answer.Err != nil {
		return fmt.Errorf("%w: the leader %s: %w", store.ErrUnavailable, leader, answer.Err)
	}
	var out demandAnswer
	if err := json.Unmarshal(answer.Data, &out); err != nil {
		return fmt.Errorf("the answer of the leader %s: %w", leader, err)
	}
	switch {
	case out.Limited != nil:
		return out.Limited
	case out.Refused != "":
		return fmt.Errorf("%w by the leader %s: %s", acme.ErrNotAllowed, leader, out.Refused)
	}
	return nil
}

// answerDemand orders a certificate for the follower, which has asked for permission: by the rule of
// this machine, and within its limits.
func (i *demandIssuer) answerDemand(ctx context.Context, from string, data []byte) ([]byte, error) {
	var q demanded
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	p, ok := i.c.state.(paired)
	if !ok || p.State().Role != pair.Leader {
		return nil, errors.New("this machine does not order for others")
	}
	var out demandAnswer
	err := i.orderFor(ctx, q.Host)
	switch {
	case errors.As(err, &out.Limited):
		i.c.log.Info("no certificate on demand for the other machine, a limit is reached", "host", q.Host, "node", from, "error", err)
	case errors.Is(err, acme.ErrNotAllowed):
		out.Refused = err.Error()
	case err != nil:
		return nil, err
	}
	return json.Marshal(out)
}

// orderFor orders a certificate for a host for which there is none yet, and no order.
func (i *demandIssuer) orderFor(ctx context.Context, host string) error {
	if what, _ := acme.CheckName(host); what != "" {
		return fmt.Errorf("%w: %s", acme.ErrNotAllowed, what)
	}
	plan := i.c.Plan()
	if plan == nil {
		return errors.New("it has no configuration yet")
	}
	d := plan.OnDemand("", host)
	if d == nil {
		return fmt.Errorf("%w: no proxy of it has on_demand for the host", acme.ErrNotAllowed)
	}
	switch p := i.Progress(host); {
	case p.Valid, p.Ordering:
		return nil
	case time.Now().Before(p.NotBefore):
		return fmt.Errorf("%w before %s: the last order has failed", acme.ErrNotAllowed, p.NotBefore.UTC().Format(time.RFC3339))
	}
	return i.Manager.OrderOnDemand(ctx, host, d)
}
