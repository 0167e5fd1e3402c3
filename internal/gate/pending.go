package gate

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

	"headgate/internal/credential"
	"headgate/internal/gate/provider"
	"headgate/internal/store"
)

// PendingAge is how long a sign-in may take.
const PendingAge = 10 * time.Minute

// waiting is a sign-in in progress. It is kept by the browser, sealed: nothing is stored
// for clients that have not signed in, so they cannot fill anything.
type waiting struct {
	Provider string           `json:"p"`
	Pending  provider.Pending `json:"q"`
	Return   Return           `json:"r"`
	Until    time.Time        `json:"t"`
}

// sealer has the key that cookies are sealed with.
type sealer struct {
	mu   sync.Mutex
	aead cipher.AEAD
}

// keySize is the length of the key: AES-256.
const keySize = 32

// aead returns the cipher. All nodes share its key, which the first of them makes.
func (e *Engine) aead() (cipher.AEAD, error) {
	e.sealer.mu.Lock()
	defer e.sealer.mu.Unlock()
	if e.sealer.aead != nil {
		return e.sealer.aead, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	entry, err := e.o.Store.Get(ctx, store.KeyGate)
	if errors.Is(err, store.ErrNotFound) {
		key := make([]byte, keySize)
		rand.Read(key)
		// Another node may be first, so what counts is read back.
		_, _ = e.o.Store.Commit(ctx, store.Change{If: []store.Condition{{Key: store.KeyGate}}, Put: []store.Entry{{Key: store.KeyGate, Value: key}}, Who: "headgate", Why: "key of sign-ins in progress"})
		entry, err = e.o.Store.Get(ctx, store.KeyGate)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read the key of sign-ins in progress: %v", ErrUnavailable, err)
	}
	block, err := aes.NewCipher(entry.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	if e.sealer.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	return e.sealer.aead, nil
}

// sealText seals a value for a browser to keep. It can be opened for the same purpose only.
func (e *Engine) sealText(purpose string, v any) (string, error) {
	aead, err := e.aead()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, text, []byte(purpose))), nil
}

// openText reads what sealText has sealed.
func (e *Engine) openText(purpose, sealed string, v any) bool {
	aead, err := e.aead()
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

// pendingName returns the name of the cookie of a sign-in with a state. Several tabs can
// sign in beside each other.
func pendingName(state string) string { return CookiePending + state[:min(len(state), 8)] }

// seal returns the cookie of a sign-in.
func (e *Engine) seal(w waiting) (Cookie, error) {
	name := pendingName(w.Pending.State)
	sealed, err := e.sealText(name, w)
	return Cookie{name, sealed}, err
}

// unseal returns the sign-in with a state among a browser's, and the name of its cookie, ""
// if there is none.
func (e *Engine) unseal(cookies []Cookie, state string) (w waiting, used string, err error) {
	if !IsSecret(state) {
		return w, "", ErrExpired
	}
	name := pendingName(state)
	for _, c := range cookies {
		if c.Name != name {
			continue
		}
		used = name
		if _, err := e.aead(); err != nil {
			return w, "", err
		}
		if e.openText(name, c.Value, &w) && time.Now().Before(w.Until) && credential.SameSecret(w.Pending.State, state) {
			return w, used, nil
		}
	}
	return waiting{}, used, ErrExpired
}
