package gate

import (
	"fmt"
	"time"

	"headgate/internal/credential"
	"headgate/internal/gate/provider"
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

// sealText seals a value for a browser to keep. It can be opened for the same purpose only.
func (e *Engine) sealText(purpose string, v any) (string, error) {
	sealed, err := e.sealer.Seal(purpose, v)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	return sealed, nil
}

// openText reads what sealText has sealed.
func (e *Engine) openText(purpose, sealed string, v any) bool {
	return e.sealer.Open(purpose, sealed, v)
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
		if err := e.sealer.Ready(); err != nil {
			return w, "", fmt.Errorf("%w: %v", ErrUnavailable, err)
		}
		if e.openText(name, c.Value, &w) && e.time().Before(w.Until) && credential.SameSecret(w.Pending.State, state) {
			return w, used, nil
		}
	}
	return waiting{}, used, ErrExpired
}
