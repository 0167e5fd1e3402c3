package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"headgate/internal/certs"
	"headgate/internal/clock"
	"headgate/internal/store"
)

// rewatch is the pause before the store is watched again after it was away.
const rewatch = 2 * time.Second

// followUploads tells the stored certificates that are in use when another is uploaded, by
// whichever machine, until ctx ends.
func followUploads(ctx context.Context, kept store.Store, uploads *certs.Uploads) {
	var after store.Position
	followed := false
	for ctx.Err() == nil {
		if !followed {
			_, at, err := kept.Snapshot(ctx, store.KeyHead) // for the position only
			if err != nil {
				clock.Sleep(ctx, rewatch)
				continue
			}
			after, followed = at, true
			uploads.Reload() // at what came before, of which nobody tells
		}
		for batch, err := range kept.Watch(ctx, store.PrefixCertificate, after) {
			if errors.Is(err, store.ErrTooOld) || errors.Is(err, store.ErrRewound) {
				followed = false
			}
			if err != nil {
				break
			}
			after = batch.Position
			for _, e := range batch.Put {
				uploads.Changed(strings.TrimPrefix(e.Key, store.PrefixCertificate))
			}
		}
		clock.Sleep(ctx, rewatch)
	}
}
