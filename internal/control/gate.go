package control

import (
	"headgate/internal/exchange"
	"headgate/internal/gate"
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

// Gate knows who has signed in.
func (c *Control) Gate() *gate.Engine { return c.gate }
