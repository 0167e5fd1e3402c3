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
	var after store.Revision
	for ctx.Err() == nil {
		if after == 0 {
			_, revision, err := kept.Snapshot(ctx, store.KeyHead) // for the revision only
			if err != nil {
				clock.Sleep(ctx, rewatch)
				continue
			}
			after = revision
			uploads.Look() // at what came before, of which nobody tells
		}
		for batch, err := range kept.Watch(ctx, store.PrefixCertificate, after) {
			if errors.Is(err, store.ErrTooOld) {
				after = 0
			}
			if err != nil {
				break
			}
			after = batch.Revision
			for _, e := range batch.Put {
				uploads.Changed(strings.TrimPrefix(e.Key, store.PrefixCertificate))
			}
		}
		clock.Sleep(ctx, rewatch)
	}
}
