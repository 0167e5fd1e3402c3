package bans

import (
	"sync"
	"time"

	"headgate/internal/exchange"
)

// seen are the clients that signed in lately, in bounded memory.
type seen struct {
	shards [64]struct {
		sync.Mutex
		at map[hostKey]int64 // by exchange.Now
	}
}

const (
	seenTime     = int64(24 * time.Hour)
	seenPerShard = 1024
)

// mark notes that a client signed in at a moment.
func (s *seen) mark(k hostKey, now int64) {
	shard := &s.shards[k.shard()%len(s.shards)]
	shard.Lock()
	defer shard.Unlock()
	if shard.at == nil {
		shard.at = map[hostKey]int64{}
	}
	if _, known := shard.at[k]; !known && len(shard.at) >= seenPerShard {
		for other := range shard.at { // any: a client cannot choose which
			delete(shard.at, other)
			break
		}
	}
	shard.at[k] = now
}

// lately reports whether a client signed in within 24 hours.
func (s *seen) lately(k hostKey) bool {
	shard := &s.shards[k.shard()%len(s.shards)]
	shard.Lock()
	defer shard.Unlock()
	at, known := shard.at[k]
	return known && exchange.Now()-at < seenTime
}
