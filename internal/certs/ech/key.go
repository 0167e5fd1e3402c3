package ech

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"
)

// The life of a key. Records in the DNS that an operator copies by hand may be as old as
// Retention; older ones cost their clients a second connection.
const (
	// Rotation is how old the newest key gets.
	Rotation = 30 * 24 * time.Hour
	// Announced is how long a new key is accepted before it is published, so that all
	// machines that share it have it.
	Announced = time.Hour
	// Retention is how old a key gets before it is no longer accepted.
	Retention = 90 * 24 * time.Hour

	// maxKeys limits the keys of a public name. Each is a decryption for a client that only
	// pretends to use ECH, as browsers do.
	maxKeys = 4
)

// Key is a key with its configuration. It is immutable.
type Key struct {
	// Config is the ECHConfig as it is published. It is part of what is encrypted, so it is
	// kept as it is.
	Config []byte `json:"config"`
	// Private is the private key of X25519.
	Private []byte `json:"private"`
	// Made is when the key was made.
	Made time.Time `json:"made"`
}

// ID returns the number by which clients refer to the key.
func (k *Key) ID() uint8 { return k.Config[atID] }

// Use is what a key is used for.
type Use string

// What keys are used for, in the order of their life.
const (
	UseAnnounced Use = "announced" // accepted, and published soon
	UsePublished Use = "published" // in the records, and offered to clients
	UseAccepted  Use = "accepted"  // accepted of clients with an older record
)

// Keys are the keys of a public name, the newest first.
type Keys []*Key

// Parse returns the keys of a public name that JSON has kept, without those that are damaged
// and without the rest of more than a few. The error is that of a damaged key.
func Parse(data []byte, publicName string) (Keys, error) {
	var all Keys
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var damaged error
	all = slices.DeleteFunc(all, func(k *Key) bool {
		if k == nil {
			damaged = errKey
			return true
		}
		err := k.check(publicName)
		if err != nil {
			damaged = err
		}
		return err != nil
	})
	slices.SortStableFunc(all, func(a, b *Key) int { return b.Made.Compare(a.Made) })
	return all[:min(len(all), maxKeys)], damaged
}

// JSON returns the keys as Parse reads them. They are secret.
func (ks Keys) JSON() []byte {
	data, err := json.Marshal(ks)
	if err != nil {
		panic(err) // bytes and times
	}
	return data
}

// Renew returns the keys of a public name that are used from now on: with a new one if the
// newest is old, or if there is none; without those that are no longer accepted. changed
// reports whether they differ. A key from the future, after a clock was set back, is replaced
// in its time.
func (ks Keys) Renew(publicName string, now time.Time) (renewed Keys, changed bool) {
	for _, k := range ks {
		if now.Sub(k.Made) < Retention {
			renewed = append(renewed, k)
		}
	}
	if len(renewed) == 0 || now.Sub(renewed[0].Made) >= Rotation {
		renewed = append(Keys{newKey(publicName, ks, now)}, renewed...)
	}
	renewed = renewed[:min(len(renewed), maxKeys)]
	return renewed, !slices.Equal(renewed, ks)
}

// newKey makes a key whose number no other has.
func newKey(publicName string, others Keys, now time.Time) *Key {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand ends the process instead
	}
	var id [1]byte
	for {
		rand.Read(id[:]) // never fails: crypto/rand ends the process instead
		if !slices.ContainsFunc(others, func(k *Key) bool { return k.ID() == id[0] }) {
			break
		}
	}
	return &Key{Config: configOf(id[0], private.PublicKey().Bytes(), publicName), Private: private.Bytes(), Made: now.UTC().Truncate(time.Second)}
}

// published returns the index of the key that is published, -1 if there is none: the newest
// that was made long enough ago, else the oldest, since nothing else can be.
func (ks Keys) published(now time.Time) int {
	for i, k := range ks {
		if now.Sub(k.Made) >= Announced {
			return i
		}
	}
	return len(ks) - 1
}

// Use returns what the key with an index is used for.
func (ks Keys) Use(i int, now time.Time) Use {
	switch published := ks.published(now); {
	case i < published:
		return UseAnnounced
	case i == published:
		return UsePublished
	}
	return UseAccepted
}
