// Package seal seals values for browsers to keep, such as a sign-in in progress: nothing is
// stored for clients that have not signed in, so they cannot fill anything. New returns a
// Sealer over a store, which has the key; all machines that share the store share the key.
//
// A sealed value can be read again and again, and has no end of its own: what is accepted
// once, or until a time, is for the caller.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"headgate/internal/store"
)

const (
	// keySize is the length of the key: AES-256.
	keySize = 32
	timeout = 10 * time.Second
)

// Sealer seals values. Its methods may be called by several goroutines at once.
type Sealer struct {
	store store.Store
	mu    sync.Mutex
	aead  cipher.AEAD // guarded by mu; nil until the key was read
}

// New returns a Sealer whose key is in a store. The key is read, or made, at first use.
func New(s store.Store) *Sealer { return &Sealer{store: s} }

// Ready reads the key. It returns an error while the store cannot be used and the key was
// not read before.
func (s *Sealer) Ready() error {
	_, err := s.cipher()
	return err
}

// cipher returns the cipher. All nodes share its key, which the first of them makes.
func (s *Sealer) cipher() (cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aead != nil {
		return s.aead, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	entry, err := s.store.Get(ctx, store.KeyGate)
	if errors.Is(err, store.ErrNotFound) {
		key := make([]byte, keySize)
		rand.Read(key)
		// Another node may be first, so what counts is read back.
		_, _ = s.store.Commit(ctx, store.Change{If: []store.Condition{{Key: store.KeyGate}}, Put: []store.Entry{{Key: store.KeyGate, Value: key}}, Who: "headgate", Why: "key of sign-ins in progress"})
		entry, err = s.store.Get(ctx, store.KeyGate)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of sign-ins in progress: %w", err)
	}
	block, err := aes.NewCipher(entry.Value)
	if err != nil {
		return nil, fmt.Errorf("read the key of sign-ins in progress: %w", err)
	}
	s.aead, err = cipher.NewGCMWithRandomNonce(block)
	return s.aead, err
}

// Seal returns a value as a text for a browser to keep. It can be opened for the same purpose
// only. The error is that of Ready, or of writing the value as JSON.
func (s *Sealer) Seal(purpose string, v any) (string, error) {
	aead, err := s.cipher()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, text, []byte(purpose))), nil
}

// Open reads what Seal has sealed for a purpose into v, and reports whether it is that.
func (s *Sealer) Open(purpose, sealed string, v any) bool {
	aead, err := s.cipher()
	if err != nil {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return false
	}
	text, err := aead.Open(nil, nil, data, []byte(purpose))
	return err == nil && json.Unmarshal(text, v) == nil
}
