package postgres

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/store"
)

// ErrKey says that the state in the database was sealed with another key.
var ErrKey = errors.New("the store is sealed with another key than that of this machine: copy store.key from a machine that uses the store")

// sealer seals what is written to the database. What it is bound to is the additional data:
// a value only opens in the group, under the key and with the revision that it was written
// for.
type sealer struct {
	aead  cipher.AEAD
	group []byte
}

func newSealer(key, group []byte) (*sealer, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("the key of the store has %d bytes, want 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead, group}, nil
}

// bound returns the additional data of a value.
func (s *sealer) bound(kind, name string, number uint64) []byte {
	b := make([]byte, 0, len(s.group)+len(kind)+len(name)+16)
	b = append(b, s.group...)
	b = append(append(b, kind...), 0)
	b = append(append(b, name...), 0)
	return binary.BigEndian.AppendUint64(b, number)
}

func (s *sealer) seal(kind, name string, number uint64, value []byte) []byte {
	return s.aead.Seal(nil, nil, value, s.bound(kind, name, number))
}

func (s *sealer) open(kind, name string, number uint64, sealed []byte) ([]byte, error) {
	value, err := s.aead.Open(nil, nil, sealed, s.bound(kind, name, number))
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s %d was sealed with another key, or altered", store.ErrUnavailable, kind, name, number)
	}
	return value, nil
}

// The kinds of sealed values.
const (
	kindEntry  = "entry"
	kindLog    = "log"
	kindRecord = "record"
	kindTest   = "test"
)

// logged is what the log has of a commit.
type logged struct {
	ID     store.ID  `json:"id"`
	Before store.ID  `json:"before,omitempty"`
	Put    []written `json:"put,omitempty"`
	Delete []string  `json:"delete,omitempty"`
	Who    string    `json:"who,omitempty"`
	Why    string    `json:"why,omitempty"`
}

type written struct {
	Key   string        `json:"key"`
	Value []byte        `json:"value"`
	TTL   time.Duration `json:"ttl,omitempty"`
}

// opens reports whether the sealer has the key of a database, by the seal in its head.
func (s *sealer) opens(seal []byte) bool {
	_, err := s.open(kindTest, "", 0, seal)
	return err == nil
}

// sealLog returns what the log gets of a change that is to follow a position.
func (s *sealer) sealLog(c *store.Change, gone []string, after store.Position) ([]byte, error) {
	l := logged{ID: c.ID, Before: after.ID, Delete: gone, Who: c.Who, Why: c.Why}
	for _, e := range c.Put {
		l.Put = append(l.Put, written{e.Key, e.Value, e.TTL})
	}
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return s.seal(kindLog, "", uint64(after.Revision)+1, data), nil
}

// openLog returns the commit of a row of the log.
func (s *sealer) openLog(revision store.Revision, made time.Time, sealed []byte) (store.Batch, error) {
	data, err := s.open(kindLog, "", uint64(revision), sealed)
	if err != nil {
		return store.Batch{}, err
	}
	var l logged
	if err := json.Unmarshal(data, &l); err != nil {
		return store.Batch{}, fmt.Errorf("revision %d in the log of the store: %w", revision, err)
	}
	b := store.Batch{Position: store.Position{Revision: revision, ID: l.ID}, Before: l.Before, Time: made, Delete: l.Delete, Who: l.Who, Why: l.Why}
	for _, w := range l.Put {
		e := store.Entry{Key: w.Key, Value: w.Value, Revision: revision, Modified: made}
		if w.TTL != 0 {
			e.Expires = made.Add(w.TTL.Truncate(time.Microsecond))
		}
		b.Put = append(b.Put, e)
	}
	return b, nil
}
