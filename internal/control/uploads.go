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

// followUploads notifies the stored certificates in use when another one is uploaded, on
// any machine, until ctx ends.
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
			uploads.Reload() // for uploads before, which are not reported
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
