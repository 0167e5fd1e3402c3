package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"headgate/internal/store"
)

// AffinityKey is the key of sticky cookies. It only reveals which cookie belongs to which
// server.
type AffinityKey struct {
	key [affinityBytes]byte
	// keep is where it is to be kept, nil if it is kept already or nowhere.
	keep store.Values
	// fault is why it ends with the process, nil if it does not.
	fault error
}

const affinityBytes = 32

// NewAffinityKey makes a random key that is not stored.
func NewAffinityKey() *AffinityKey {
	k := &AffinityKey{fault: errors.New("there is no state directory for their key")}
	rand.Read(k.key[:])
	return k
}

// OpenAffinityKey loads the key from where it is kept, or makes one. Nothing is
// written before Keep. Without a place, or when what is there cannot be used, the key
// is in memory only: cookies end with the process then, which is better than no
// service.
func OpenAffinityKey(kept store.Values) *AffinityKey {
	if kept == nil {
		return NewAffinityKey()
	}
	k := &AffinityKey{}
	if err := k.load(kept); errors.Is(err, fs.ErrNotExist) {
		rand.Read(k.key[:])
		k.keep = kept
	} else if err != nil {
		rand.Read(k.key[:]) // what is there may be another node's: it is left alone
		k.fault = err
	}
	return k
}

// Keep keeps a key that was made. The error says why sticky cookies end with the
// process, if they do.
func (k *AffinityKey) Keep() error {
	if k.keep != nil {
		k.fault = k.keep.Keep(store.KeySticky, []byte(hex.EncodeToString(k.key[:])+"\n"))
		k.keep = nil
	}
	return k.fault
}

// load loads the key: 64 hexadecimal digits in a line.
func (k *AffinityKey) load(kept store.Values) error {
	data, err := kept.Load(store.KeySticky)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if n, err := hex.Decode(k.key[:], []byte(text[:min(len(text), 2*affinityBytes)])); err != nil || n != affinityBytes || len(text) != 2*affinityBytes {
		return fmt.Errorf("%s does not hold a key of %d hexadecimal digits", store.KeySticky, 2*affinityBytes)
	}
	return nil
}

// value returns what a cookie says for a server of a route: the first 128 bits
// of the HMAC-SHA256 of its names, in base64.
func (k *AffinityKey) value(proxy, route, server string) string {
	h := hmac.New(sha256.New, k.key[:])
	for _, part := range []string{"affinity", proxy, route, server} {
		h.Write([]byte(part))
		h.Write([]byte{0}) // which none of the parts can hold
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
