package control

import "headgate/internal/store"

// Store is where users, events and whatever else is no configuration are kept. It can
// be used from New on until the funcs of Ending have returned.
func (c *Control) Store() store.Store { return c.state }

// Ending has a func called when nothing is served any more and the store is about to be
// closed. It is called before Run.
func (c *Control) Ending(end func()) { c.endings = append(c.endings, end) }
