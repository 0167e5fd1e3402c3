package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"headgate/internal/certs"
	"headgate/internal/clock"
	"headgate/internal/ports/listen"
	"headgate/internal/store"
)

const (
	// ticketAge is how old the newest key of session tickets gets, by the engine's clock.
	ticketAge = 12 * time.Hour
	// ticketLook is how often a machine looks at its age.
	ticketLook = 10 * time.Minute
	// maxTickets is how many keys are kept. The oldest opens tickets for two days.
	maxTickets = 4
	// keyWait is how long a start waits for keys.
	keyWait = 5 * time.Second
)

// sharedKeys are keys that all machines which share a store have: a client that comes to
// another machine resumes its TLS session, keeps its server, and proves its address no second
// time. Without the store, a machine has keys of its own.
type sharedKeys struct {
	state store.Store
	log   *slog.Logger
	// tickets are the seeds of session tickets; nil where no store is shared.
	tickets *certs.SharedTickets
}

// ticketSeeds is the value of store.KeyTickets.
type ticketSeeds struct {
	// Keys are in hexadecimal digits, the newest first.
	Keys []string `json:"keys"`
}

// newSharedKeys reads the keys, and makes those that no machine has made yet.
func newSharedKeys(state store.Store, log *slog.Logger, quic *listen.QUICKeys) *sharedKeys {
	k := &sharedKeys{state: state, log: log, tickets: certs.NewSharedTickets()}
	ctx, stop := context.WithTimeout(context.Background(), keyWait)
	defer stop()
	_, err := store.Once(ctx, state, store.KeySticky, func() []byte { return []byte(randomKey() + "\n") })
	k.warn("sticky cookies", err)
	data, err := store.Once(ctx, state, store.KeyQUIC, func() []byte {
		data, err := json.Marshal(quic)
		if err != nil {
			panic(err) // two arrays of bytes
		}
		return data
	})
	if err == nil {
		err = json.Unmarshal(data, quic)
	}
	k.warn("QUIC", err)
	data, err = store.Once(ctx, state, store.KeyTickets, func() []byte { return ticketSeeds{[]string{randomKey()}}.value() })
	if err == nil {
		err = k.setTickets(data)
	}
	k.warn("session tickets", err)
	return k
}

func randomKey() string {
	var key [32]byte
	rand.Read(key[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(key[:])
}

func (s ticketSeeds) value() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a list of strings
	}
	return data
}

func (k *sharedKeys) warn(of string, err error) {
	if err != nil {
		k.log.Warn("this machine has its own keys of "+of+", as those of the shared store cannot be read", "error", err)
	}
}

// setTickets uses the seeds of a value of store.KeyTickets.
func (k *sharedKeys) setTickets(value []byte) error {
	var s ticketSeeds
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	seeds := make([][32]byte, len(s.Keys))
	for i, text := range s.Keys {
		if n, err := hex.Decode(seeds[i][:], []byte(text[:min(len(text), 64)])); err != nil || n != 32 || len(text) != 64 {
			return fmt.Errorf("%s does not hold keys of 64 hexadecimal digits", store.KeyTickets)
		}
	}
	if len(seeds) == 0 {
		return fmt.Errorf("%s holds no key", store.KeyTickets)
	}
	k.tickets.Set(seeds)
	return nil
}

// follow uses the keys that another machine has put in the place of those here.
func (k *sharedKeys) follow(ctx context.Context) {
	e, err := k.state.Get(ctx, store.KeyTickets)
	if err == nil {
		err = k.setTickets(e.Value)
	}
	if err != nil && ctx.Err() == nil {
		k.log.Warn("the keys of session tickets cannot be read", "error", err)
	}
}

// run rotates the keys until ctx ends. One machine does, under a lease.
func (k *sharedKeys) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.rotate(ctx, ticketAge); err != nil && ctx.Err() == nil {
			k.log.Info("the keys of session tickets are not rotated now", "error", err)
		}
		clock.Sleep(ctx, ticketLook)
	}
}

// rotate puts a new key in front if the newest is older than age.
func (k *sharedKeys) rotate(ctx context.Context, age time.Duration) error {
	e, err := k.state.Get(ctx, store.KeyTickets)
	if err != nil {
		return err
	}
	now, err := k.state.Now(ctx)
	if err != nil || now.Sub(e.Modified) < age {
		return err
	}
	lease, err := k.state.Acquire(ctx, "tickets", time.Minute)
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx)) // it ends by itself, too
	var s ticketSeeds
	if err := json.Unmarshal(e.Value, &s); err != nil {
		return err
	}
	s.Keys = append([]string{randomKey()}, s.Keys...)
	s.Keys = s.Keys[:min(len(s.Keys), maxTickets)]
	_, err = k.state.Commit(ctx, store.Change{
		If: []store.Condition{{Key: store.KeyTickets, Revision: e.Revision}}, Put: []store.Entry{{Key: store.KeyTickets, Value: s.value()}},
		Under: lease, Why: "new key of session tickets",
	})
	return err
}
