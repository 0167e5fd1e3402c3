package api

import (
	"errors"
	"net/http"
	"time"

	"headgate/internal/pair"
	"headgate/internal/store"
)

// pairRows are the rows of a pair of machines.
func (a *API) pairRows() []row {
	return []row{
		{method: http.MethodGet, path: "/pair", access: viewer, area: areaStatus, may: []int{409}, out: of[pairBody](), handle: a.pairState,
			about: "Returns the role of this machine in its pair, the other machine, and how far the follower is behind."},
		{method: http.MethodPost, path: "/pair/invitations", access: admin, area: areaOperators, may: []int{409, 503}, in: of[invitationInput](), out: of[invitationBody](), status: http.StatusCreated, dry: true, handle: withBody(a.inviteNode),
			about: "Creates a token with which one machine can join the group, or the shared database, once and within an hour."},
		{method: http.MethodDelete, path: "/pair/members/{name}", access: admin, area: areaOperators, may: []int{409, 503}, dry: true, handle: a.revokeNode,
			about: "Revokes the credential of a machine and removes it from the group."},
		{method: http.MethodPost, path: "/pair/promote", access: admin, area: areaOperators, may: []int{409, 503}, in: of[promoteInput](), out: of[pairBody](), dry: true, handle: withBody(a.promote),
			about: "Makes this machine the leader of the pair."},
	}
}

// pairBody is the state of this machine and the members of its group.
type pairBody struct {
	pair.State
	// Members are the machines of the group, by name.
	Members []pair.Member `json:"members" required:"true"`
}

// invitationInput says who may join.
type invitationInput struct {
	// Name is the name that the machine must have; absent is any.
	Name string `json:"name,omitempty" max:"63"`
	// Address is the URL at which the new machine connects to the admin listener of this one, such
	// as https://192.0.2.7:9080. It is required where machines share a database, and absent in a
	// pair, which knows it.
	Address string `json:"address,omitempty" max:"255"`
}

// invitationBody is a token to join.
type invitationBody struct {
	// Token is the text for headgate node join. It is in this response and never shown again.
	Token string `json:"token" required:"true"`
	// Expires is when it becomes invalid.
	Expires time.Time `json:"expires" required:"true"`
}

// promoteInput says how a machine becomes the leader.
type promoteInput struct {
	// Alone promotes the machine although the other one cannot be reached. Changes that the
	// other one has made and this one has not are lost.
	Alone bool `json:"alone,omitempty"`
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

func (a *API) inPair() (*pair.Store, error) {
	if a.Pair == nil {
		return nil, refuse("not_in_group", "", "this machine is in no group of two machines", "create one with \"headgate node init\" while headgate is stopped")
	}
	return a.Pair, nil
}

func (a *API) pairState(c *call) (any, error) {
	p, err := a.inPair()
	if err != nil {
		return nil, err
	}
	members, err := p.Members(c.rq.Context())
	return pairBody{p.State(), members}, err
}

func (a *API) inviteNode(c *call, in *invitationInput) (any, error) {
	if a.Pair == nil && a.Invitations != nil {
		return a.inviteToDatabase(c, in)
	}
	p, err := a.inPair()
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		return invitationBody{}, pairProblem(p.CheckInvite(c.rq.Context(), in.Name))
	}
	if in.Address != "" {
		return nil, refuse("invalid", "/address", "the machines of a pair know the address", "leave it out")
	}
	record := c.who.Audit("node.invite", "node "+in.Name, "", nil, nil)
	token, err := p.Invite(c.rq.Context(), in.Name, c.who.Name, &record)
	if err != nil {
		return nil, pairProblem(err)
	}
	return invitationBody{token.Token, token.Expires}, nil
}

// inviteToDatabase creates a token for a machine that is to share the database.
func (a *API) inviteToDatabase(c *call, in *invitationInput) (any, error) {
	if _, err := pair.CheckAddress(in.Address); err != nil {
		return nil, refuse("invalid", "/address", err.Error(), "write the URL at which the new machine reaches the admin listener of this one")
	}
	if c.dryRun {
		return invitationBody{}, pairProblem(a.Invitations.Check(c.rq.Context(), in.Name, in.Address))
	}
	token, err := a.Invitations.Invite(c.rq.Context(), in.Name, in.Address, c.who.Name, c.who.Audit("node.invite", "node "+in.Name, "", nil, nil))
	if err != nil {
		return nil, pairProblem(err)
	}
	return invitationBody{token.Token, token.Expires}, nil
}

func (a *API) revokeNode(c *call) (any, error) {
	p, err := a.inPair()
	if err != nil {
		return nil, err
	}
	members, err := p.Members(c.rq.Context())
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name == c.name() {
			if c.dryRun {
				return nil, nil
			}
			record := c.who.Audit("node.remove", "node "+m.Name, "", m, nil)
			return nil, pairProblem(p.Remove(c.rq.Context(), m.Name, c.who.Name, &record))
		}
	}
	return nil, refuse("not_found", "", "there is no machine "+c.name()+" in the group", "")
}

func (a *API) promote(c *call, in *promoteInput) (any, error) {
	p, err := a.inPair()
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		if err := p.CheckPromote(c.rq.Context(), in.Alone); err != nil {
			return nil, pairProblem(err)
		}
		return a.pairState(c)
	}
	record := c.who.Audit("node.promote", "node "+p.State().Name, in.Why, nil, in)
	if err := p.Promote(c.rq.Context(), in.Alone, c.who.Name, &record); err != nil {
		return nil, pairProblem(err)
	}
	return a.pairState(c)
}

// pairProblem returns the problem for an error of a pair, or the error itself.
func pairProblem(err error) error {
	var other *pair.NotLeader
	var away *pair.NotFollowed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return refuse("not_leader", "", other.Error(), "nothing was changed")
	case errors.As(err, &away):
		return refuse("not_followed", "", away.Error(), "")
	case errors.Is(err, pair.ErrName):
		return refuse("exists", "/name", err.Error(), "")
	case errors.Is(err, pair.ErrFull):
		return refuse("group_full", "", err.Error(), "")
	case errors.Is(err, pair.ErrPromote):
		return refuse("not_promoted", "", err.Error(), "")
	case errors.Is(err, store.ErrNotFound):
		return refuse("not_found", "", "there is no such machine in the group", "")
	}
	return err
}
