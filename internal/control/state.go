package control

import (
	"context"
	"io"

	"headgate/internal/store"
)

// Store is where users, events and whatever else is no configuration are kept. It can
// be used from New on until the funcs of Ending have returned.
func (c *Control) Store() store.Store { return c.state }

// Ending has a func called when nothing is served any more and the store is about to be
// closed. It is called before Run.
func (c *Control) Ending(end func()) { c.endings = append(c.endings, end) }

// Backup writes one archive of everything in the state directory, sealed when there is a
// passphrase. It may be called while everything goes on.
func (c *Control) Backup(ctx context.Context, w io.Writer, passphrase string) error {
	return c.files.Backup(ctx, w, passphrase)
}
