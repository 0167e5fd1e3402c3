package control

import (
	"time"

	"headgate/internal/cluster"
	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/pair"
)

// signIn gives the engine of the gates what the configuration says about signing in.
type signIn struct{ engine *gate.Engine }

// Prepare reads the configuration.
func (s signIn) Prepare(next *Next) (Change, error) { return &signingIn{s, next}, nil }

// signingIn is what a configuration says.
type signingIn struct {
	signIn
	next *Next
}

// Commit takes it into use.
func (ch *signingIn) Commit() {
	c := &ch.next.Config.SignIn
	if !c.Configured() {
		ch.engine.Use(c, nil)
		return
	}
	ch.engine.Use(c, ch.next.Plan)
}

// Cancel does nothing.
func (*signingIn) Cancel() {}

// endSession aborts what runs in a session, or with a token, that has ended.
func (c *Control) endSession(s exchange.SignIn) { c.tunnels.EndSession(s) }

// detached returns for how long this machine has not known what others write to the store that
// it shares, 0 if it does.
func (c *Control) detached() time.Duration {
	switch s := c.state.(type) {
	case sharedStore:
		if h := s.Health(); h.State != cluster.Following {
			return time.Since(h.Since)
		}
	case paired:
		if st := s.State(); st.Role == pair.Follower && !st.Connected {
			return time.Since(st.LastContact)
		}
	}
	return 0
}

// signInIssue returns the name of the proxy with the sign-in page and what is wrong with it, ""
// if it can be reached or was not tested.
func (c *Control) signInIssue() (proxy, issue string) {
	found := c.gate.Unreachable()
	p := c.current.Load()
	if found == nil || p == nil {
		return "", ""
	}
	if page := p.Config().SignInProxy(); page != nil {
		return page.Name, found.String()
	}
	return "", ""
}

// Gate knows who has signed in.
func (c *Control) Gate() *gate.Engine { return c.gate }
